#include "chiliad/io/faults.h"

#include <fmt/core.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <limits>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "chiliad/base/error.h"

namespace chiliad::io {

const char* file_op_name(FileOp op) {
  constexpr std::array<const char*, 9> kNames{"open",   "read",        "write",       "sync", "rename",
                                              "remove", "make_folder", "sync_folder", "close"};
  return kNames[static_cast<size_t>(op)];
}

#ifdef CHILIAD_FAULTS
namespace {

struct EnvironmentFault {
  std::string op;
  std::string path_part;
  int64_t nth = 0;
  int64_t last = std::numeric_limits<int64_t>::max();
  std::string what;
  std::atomic<int64_t> seen{0};
};

std::unique_ptr<EnvironmentFault> parse_environment() {
  const char* text = std::getenv("CHILIAD_FILE_FAULT");
  if (text == nullptr) return nullptr;
  std::vector<std::string> parts;
  std::string_view rest = text;
  while (true) {
    const size_t colon = rest.find(':');
    parts.emplace_back(rest.substr(0, colon));
    if (colon == std::string_view::npos) break;
    rest.remove_prefix(colon + 1);
  }
  if (parts.size() != 4)
    throw InvalidInput("CHILIAD_FILE_FAULT", fmt::format("expected OP:PATH:N:WHAT, got '{}'", text));
  auto fault = std::make_unique<EnvironmentFault>();
  fault->op = parts[0];
  fault->path_part = parts[1];
  const char* const end = parts[2].data() + parts[2].size();
  const auto first = std::from_chars(parts[2].data(), end, fault->nth);
  if (first.ptr != end && *first.ptr == '-') std::from_chars(first.ptr + 1, end, fault->last);
  fault->what = parts[3];
  return fault;
}

std::mutex hook_mutex;  // guards installed_hook
FaultHook installed_hook;

FaultAction environment_action(FileOp op, const std::string& path) {
  static const std::unique_ptr<EnvironmentFault> fault = parse_environment();
  if (fault == nullptr) return {};
  if (fault->op != "any" && fault->op != file_op_name(op)) return {};
  if (path.find(fault->path_part) == std::string::npos) return {};
  const int64_t seen = ++fault->seen;
  if (fault->what == "kill") {
    if (seen == fault->nth) std::raise(SIGKILL);
    return {};
  }
  if (seen < fault->nth || seen > fault->last) return {};
  if (fault->what == "ENOSPC") return {ENOSPC, op == FileOp::kWrite};
  if (fault->what == "EDQUOT") return {EDQUOT, false};
  return {EIO, false};
}

}  // namespace

ScopedFaultHook::ScopedFaultHook(FaultHook hook) {
  std::lock_guard lock(hook_mutex);
  installed_hook = std::move(hook);
}

ScopedFaultHook::~ScopedFaultHook() {
  std::lock_guard lock(hook_mutex);
  installed_hook = nullptr;
}

FaultAction before_file_op(FileOp op, const std::string& path) {
  FaultHook hook;
  {
    std::lock_guard lock(hook_mutex);
    hook = installed_hook;
  }
  if (hook) {
    const FaultAction action = hook(op, path);
    if (action.error != 0 || action.short_write) return action;
  }
  return environment_action(op, path);
}
#else
ScopedFaultHook::ScopedFaultHook(FaultHook) {}
ScopedFaultHook::~ScopedFaultHook() = default;
FaultAction before_file_op(FileOp, const std::string&) {
  return {};
}
#endif

}  // namespace chiliad::io
