#include <fmt/core.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/chiliad/ckpt_folder.h"
#include "apps/chiliad/verbs.h"
#include "chiliad/base/error.h"
#include "chiliad/base/json_text.h"
#include "chiliad/base/units.h"
#include "chiliad/checkpoint/reader.h"

namespace chiliad::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kDamaged = 3;

struct Finding {
  std::string path;
  std::string problem;  ///< empty: good
  int64_t bytes = 0;
};

Finding verify(const fs::path& path) {
  Finding finding{path.string(), "", 0};
  try {
    const auto opened = checkpoint::Checkpoint::open(path);
    opened.verify();
    finding.bytes = opened.num_bytes();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kInternal) throw;
    finding.problem = error.what();
  }
  return finding;
}

std::vector<fs::path> checkpoints_of(const fs::path& given) {
  if (given.filename().string().starts_with("step-") || fs::exists(given / "COMMIT")) return {given};
  std::vector<fs::path> paths;
  for (const auto& entry : checkpoint::list(checkpoint_folder(given))) {
    if (entry.committed) paths.push_back(entry.path);
  }
  return paths;
}

int run(const std::string& given, bool json) {
  auto page = nlohmann::ordered_json::array();
  int code = 0;
  for (const auto& path : checkpoints_of(given)) {
    const auto finding = verify(path);
    if (!finding.problem.empty()) code = kDamaged;
    page.push_back({{"path", finding.path},
                    {"good", finding.problem.empty()},
                    {"problem", finding.problem},
                    {"bytes", finding.bytes}});
    if (json) continue;
    fmt::print("{}: {}\n", finding.path,
               finding.problem.empty() ? "good, " + format_bytes(finding.bytes) : finding.problem);
  }
  if (page.empty()) {
    throw InvalidInput(
        given, "holds no committed checkpoint. Give a step-N.gG folder, a run directory or its checkpoints/");
  }
  if (json) fmt::print("{}\n", json_text(page));
  return code;
}

}  // namespace

void add_ckpt_verify(Verb& parent) {
  struct Arguments {
    std::string folder;
    bool json = false;
  };
  auto arguments = std::make_shared<Arguments>();  // shared by the parser and the action, until the end
  Verb verb = parent.add("verify", "Reads checkpoints to the last byte: checksums, digests, coverage");
  verb.option("DIR", arguments->folder, "One checkpoint, a run directory or its checkpoints/").required();
  verb.flag("--json", arguments->json, "Prints the result as a JSON array");
  verb.footer("Example: chiliad ckpt verify runs/cats\nExit code 3 where one is damaged.");
  verb.run([arguments] { return run(arguments->folder, arguments->json); });
}

}  // namespace chiliad::cli
