#include <fmt/core.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/chiliad/verbs.h"
#include "chiliad/base/clock.h"
#include "chiliad/base/error.h"
#include "chiliad/base/units.h"
#include "chiliad/index/index.h"
#include "chiliad/io/file.h"
#include "chiliad/observe/terminal_progress.h"

namespace chiliad::cli {
namespace {

constexpr int kDamaged = 3;
constexpr int64_t kMostShown = 20;

struct Finding {
  std::string key;
  std::string file;
  std::string reason;
};

struct Arguments {
  std::string folder;
  bool json = false;
  bool quiet = false;
};

/// What is wrong with a part's bytes; empty: nothing.
std::string check_part(const index::Index& index, const index::Shard& shard, const index::Part& part,
                       std::vector<std::byte>& buffer) {
  try {
    buffer.resize(part.length);
    io::File::open_read(index.part_path(shard, part)).read_at(static_cast<int64_t>(part.offset), buffer);
  } catch (const Error& error) {
    return error.what();
  }
  const uint64_t found = hash64(buffer);
  if (found == part.checksum) return "";
  return fmt::format("checksum is {:016x}, the index says {:016x}: the file changed", found, part.checksum);
}

int64_t payload_bytes(const index::Index& index) {
  int64_t bytes = 0;
  for (const auto& shard : index.shards()) {
    for (const auto& part : shard.parts) bytes += static_cast<int64_t>(part.length);
  }
  return bytes;
}

std::vector<Finding> verify(const index::Index& index, int64_t total, observe::TerminalProgress& progress) {
  std::vector<Finding> findings;
  std::vector<std::byte> buffer;
  int64_t done = 0;
  for (const auto& shard : index.shards()) {
    for (size_t s = 0; s < shard.samples.size(); ++s) {
      const auto& sample = shard.samples[s];
      for (uint32_t p = sample.first_part; p < sample.first_part + sample.num_parts; ++p) {
        const auto& part = shard.parts[p];
        auto reason = check_part(index, shard, part, buffer);
        if (!reason.empty())
          findings.push_back({shard.keys[s], shard.files[part.file].path, std::move(reason)});
        done += static_cast<int64_t>(part.length);
        progress.update(done, total, "");
      }
    }
  }
  return findings;
}

int run(const Arguments& arguments) {
  const auto index = index::Index::open(arguments.folder);
  const SystemClock clock;
  observe::TerminalProgress progress(std::cerr, observe::progress_style(arguments.quiet, STDERR_FILENO),
                                     clock, {.label = "verifying", .bytes = true});
  const int64_t total = payload_bytes(index);
  const auto findings = verify(index, total, progress);
  progress.finish();
  if (arguments.json) {
    nlohmann::ordered_json page{
        {"samples", index.num_samples()}, {"bytes", total}, {"damaged", findings.size()}};
    page["findings"] = nlohmann::ordered_json::array();
    for (const auto& f : findings)
      page["findings"].push_back({{"key", f.key}, {"file", f.file}, {"reason", f.reason}});
    fmt::print("{}\n", page.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  } else {
    for (size_t i = 0; i < findings.size() && i < kMostShown; ++i) {
      fmt::print("{}: {}: {}\n", findings[i].file, findings[i].key, findings[i].reason);
    }
    fmt::print("{}: {} parts damaged of {} samples, {}\n", arguments.folder, findings.size(),
               index.num_samples(), format_bytes(total));
  }
  return findings.empty() ? 0 : kDamaged;
}

}  // namespace

void add_data_verify(CLI::App& parent, Action& action) {
  auto arguments = std::make_shared<Arguments>();  // shared by the parser and the action, until the end
  auto* verb =
      parent.add_subcommand("verify", "Reads every byte that an index names and compares its checksum");
  verb->add_option("DIR", arguments->folder, "Folder made by `chiliad data index`")->required();
  verb->add_flag("--json", arguments->json, "Prints the result as one JSON object");
  verb->add_flag("--quiet", arguments->quiet, "Shows no progress");
  verb->footer(
      "Example: chiliad data verify photos.index\nExit code 3 where something is damaged or missing.");
  verb->callback([arguments, &action] { action = [arguments] { return run(*arguments); }; });
}

}  // namespace chiliad::cli
