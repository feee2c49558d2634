#include "apps/chiliad/formats.h"

#include <fmt/core.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "chiliad/base/error.h"
#include "chiliad/base/json_text.h"
#include "chiliad/base/log.h"
#include "chiliad/io/file.h"
#include "chiliad/ipc/child_process.h"
#include "chiliad/supervise/launch/run_directory.h"
#include "chiliad/supervise/launch/workers.h"

namespace chiliad::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kAuto = "auto";
constexpr auto kDeadline = std::chrono::minutes(2);
constexpr const char* kRepeats = "5";
constexpr int64_t kMostBytes = 1 << 20;

bool is_settled(const spec::RunFile& file) {
  return file.parallel.compute != kAuto && file.parallel.products != kAuto;
}

/// What a run that is there already took.
bool take_from_run(spec::RunFile& file, const fs::path& run_file) {
  if (!fs::exists(run_file)) return false;
  const auto before = spec::read_run_file(run_file.string(), {});
  if (file.parallel.compute == kAuto) file.parallel.compute = before.parallel.compute;
  if (file.parallel.products == kAuto) file.parallel.products = before.parallel.products;
  return is_settled(file);
}

/// Runs `chiliad-worker probe --formats` on the run file.
void measure(const fs::path& run_file, const fs::path& out) {
  ipc::SpawnOptions options;
  options.argv = {supervise::worker_program(),
                  "probe",
                  run_file.string(),
                  "--formats",
                  "--repeats",
                  kRepeats,
                  "--out",
                  out.string()};
  auto child = ipc::ChildProcess::spawn(options);
  const auto status = child.wait(kDeadline);
  if (status.has_value() && status->signal == 0 && status->code == 0) return;
  throw Unavailable("precision", fmt::format("auto: the measurement of formats {}. Set precision.compute and "
                                             "precision.products to what you want",
                                             status.has_value() ? "ended with " + status->to_string()
                                                                : "took longer than two minutes"));
}

}  // namespace

void settle_formats(spec::RunFile& file, bool starts) {
  if (is_settled(file)) return;
  const supervise::RunDirectory directory(file.run.dir);
  if (!starts && take_from_run(file, directory.run_file())) return;
  const fs::path asked = directory.path() / "formats.yaml";
  const fs::path measured = directory.path() / "formats.json";
  io::write_atomic(asked, spec::to_yaml(file));
  measure(asked, measured);
  fs::remove(asked);
  const auto result = parse_json<nlohmann::json>(io::read_text(measured, kMostBytes));
  file.parallel.compute = result.at("compute").get<std::string>();
  file.parallel.products = result.at("products").get<std::string>();
  log_info("measured formats: precision.compute {}, precision.products {} ({})", file.parallel.compute,
           file.parallel.products, measured.string());
}

void assume_formats(spec::RunFile& file) {
  if (file.parallel.compute == kAuto) file.parallel.compute = "fp32";
  if (file.parallel.products == kAuto) file.parallel.products = "known";
}

}  // namespace chiliad::cli
