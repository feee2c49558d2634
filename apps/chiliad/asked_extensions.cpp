#include "apps/chiliad/asked_extensions.h"

#include <fmt/core.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "chiliad/base/error_kinds.h"
#include "chiliad/base/json_text.h"
#include "chiliad/io/file.h"
#include "chiliad/ipc/child_process.h"
#include "chiliad/spec/extension_json.h"
#include "chiliad/supervise/launch/workers.h"

namespace chiliad::cli {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostAnswerBytes = 256 << 20;
constexpr auto kDeadline = std::chrono::minutes(2);

/// A folder for question and answer, gone with it.
class Exchange {
 public:
  Exchange() {
    std::string name = (fs::temp_directory_path() / "chiliad-extensions-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
      throw Unavailable(name, fmt::format("making a folder failed: {}", std::strerror(errno)));
    folder_ = name;
  }
  ~Exchange() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  [[nodiscard]] std::string text() const { return (folder_ / "run.yaml").string(); }
  [[nodiscard]] std::string answer() const { return (folder_ / "answer.json").string(); }

 private:
  fs::path folder_;
};

}  // namespace

spec::Extensions ask_worker(const spec::ExtensionRequest& request) {
  const Exchange exchange;
  io::write_atomic(exchange.text(), std::string(request.text));
  ipc::SpawnOptions options;
  options.argv = {supervise::worker_program(),
                  "extensions",
                  "--text",
                  exchange.text(),
                  "--answer",
                  exchange.answer(),
                  "--name=" + request.name,
                  "--folder=" + fs::absolute(request.folder / ".").string()};
  for (const auto& setting : request.overrides) options.argv.push_back("--set=" + setting);
  auto worker = ipc::ChildProcess::spawn(options);
  const auto status = worker.wait(kDeadline);
  if (!status.has_value() || status->code != 0 || status->signal != 0)
    throw Unavailable(request.name, fmt::format("extensions: the worker that loads the libraries {}",
                                                status.has_value() ? "ended with " + status->to_string()
                                                                   : "did not answer within 2 minutes"));
  const std::string answer = io::read_text(exchange.answer(), kMostAnswerBytes);
  const auto json = parse_json<nlohmann::json>(answer);
  if (json.contains("error"))
    throw_error(kind_from_name(json["kind"].get<std::string>()), "", json["error"].get<std::string>());
  return spec::extensions_from_json(answer);
}

}  // namespace chiliad::cli
