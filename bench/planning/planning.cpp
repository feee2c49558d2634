// Planning of a data set that fits no memory: bench_planning FOLDER [MILLIONS]. Makes the columns of so many
// million samples (default 1000) in FOLDER, fewer where less than 12 GB of the disk would stay free, and
// plans steps of 1,024 ranks from them with cold caches. The caller removes FOLDER (run.sh does).
#include <fcntl.h>
#include <fmt/core.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "chiliad/base/rng.h"
#include "chiliad/index/content.h"
#include "chiliad/index/plan_columns.h"
#include "chiliad/io/file.h"
#include "chiliad/stepplan/plan.h"

namespace {

using namespace chiliad;
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int64_t kRanks = 1024;
constexpr int64_t kBatch = 8 * kRanks;
constexpr int64_t kShardSamples = 100'000;
constexpr int64_t kBlockSamples = 640;  // 64 MiB of pictures of 100 KB
constexpr int64_t kFileShards = 160;
constexpr double kSampleBytes = 13.1;
constexpr double kFreeBytes = 12e9;
const Digest kCounted{7, 7};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void print(const std::string& metric, double value, const char* unit, double target) {
  fmt::print(R"({{"bench":"planning","metric":"{}","value":{:.5g},"unit":"{}","target":{:g},"ok":{}}})"
             "\n",
             metric, value, unit, target, value <= target);
  std::fflush(stdout);
}

void print(const std::string& metric, double value, const char* unit) {
  fmt::print(R"({{"bench":"planning","metric":"{}","value":{:.5g},"unit":"{}"}})"
             "\n",
             metric, value, unit);
  std::fflush(stdout);
}

/// A field of a file of /proc/self, in its own unit.
double proc_field(const char* file, const std::string& name) {
  std::ifstream stream(std::string("/proc/self/") + file);
  std::string word;
  double value = -1.0;
  while (stream >> word)
    if (word == name) stream >> value;
  return value;
}

/// Sides as photos on the web have them: often of a few ratios, else any.
void draw_shape(Rng& rng, index::BlockRows::Sample& sample) {
  constexpr std::array<double, 6> kRatios{1.5, 4.0 / 3.0, 16.0 / 9.0, 1.0, 2.0 / 3.0, 0.75};
  const double ratio =
      rng.below(10) < 7 ? kRatios[rng.below(kRatios.size())] : 0.4 + 2.2 * rng.uniform_double();
  sample.width = static_cast<uint32_t>(300 + rng.below(1700));
  sample.height = std::max(1U, static_cast<uint32_t>(sample.width / ratio));
}

void make_file(const fs::path& folder, int64_t number, int64_t num_shards) {
  index::PlanColumnsWriter writer(folder, static_cast<uint32_t>(number));
  index::BlockRows rows;
  rows.counted = true;
  Rng rng({static_cast<uint64_t>(number), 0x706C616EULL});
  for (int64_t s = number * kFileShards; s < std::min(num_shards, (number + 1) * kFileShards); ++s) {
    for (int64_t first = 0; first < kShardSamples; first += kBlockSamples) {
      rows.shard = static_cast<uint32_t>(s);
      rows.first_sample = first;
      rows.samples.resize(static_cast<size_t>(std::min(kBlockSamples, kShardSamples - first)));
      rows.captions.resize(rows.samples.size());
      for (size_t i = 0; i < rows.samples.size(); ++i) {
        const auto caption = static_cast<uint32_t>(first) + static_cast<uint32_t>(i);
        rows.samples[i] = {mix64(static_cast<uint64_t>(s * kShardSamples + caption)),
                           0,
                           0,
                           caption,
                           static_cast<uint32_t>(i),
                           1};
        draw_shape(rng, rows.samples[i]);
        rows.captions[i] = {index::language_code("en"), static_cast<uint32_t>(5 + rng.below(100))};
      }
      writer.add(rows);
    }
  }
  writer.finish();
}

/// An index of which planning needs the manifest alone, and its columns.
void make_data(const fs::path& folder, int64_t num_samples) {
  index::Manifest manifest;
  manifest.layout = "webdataset";
  manifest.num_samples = num_samples;
  const int64_t num_shards = num_samples / kShardSamples;
  for (int64_t s = 0; s < num_shards; ++s)
    manifest.shards.push_back(
        {fmt::format("{:06}.chidx", s), {1, static_cast<uint64_t>(s)}, kShardSamples, 0});
  manifest.digest = index::manifest_digest(manifest);
  fs::create_directories(folder);
  index::write_manifest(folder, manifest);
  const fs::path columns = index::plan_columns_folder(folder, manifest.digest, kCounted);
  const int64_t num_files = (num_shards + kFileShards - 1) / kFileShards;
  std::atomic<int64_t> next{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      for (int64_t f = next++; f < num_files; f = next++) {
        make_file(columns, f, num_shards);
        fmt::print(stderr, "\rcolumns: file {} of {}", f + 1, num_files);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  fmt::print(stderr, "\n");
  index::finish_plan_columns(columns, num_files);
}

void drop_caches(const fs::path& folder) {
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    const auto file = io::File::open_read(entry.path());
    ::fsync(file.fd());
    ::posix_fadvise(file.fd(), 0, 0, POSIX_FADV_DONTNEED);
  }
}

stepplan::Plan open_plan(const index::Index& index, const spec::DataOptions& data) {
  stepplan::PlanFiles files;
  files.counted = kCounted;
  files.progress = [](int64_t done, int64_t total) {
    fmt::print(stderr, "\rdry run: block {} of {}", done, total);
  };
  return {index, data, 1, [](uint32_t, uint32_t) { return 1U; }, {}, stepplan::PlanPart::kTraining, files};
}

/// CPU seconds of this process: others use the machine, too.
double cpu_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double timed_select(const stepplan::Plan& plan, int64_t step) {
  const auto start = Clock::now();
  static_cast<void>(plan.select(step, {}));
  return 1e3 * seconds_since(start);
}

void measure(const fs::path& folder, const spec::DataOptions& data) {
  auto start = Clock::now();
  drop_caches(folder);
  const auto index = index::Index::open(folder);
  print("open_index", seconds_since(start), "s");
  start = Clock::now();
  const double dry_before = cpu_seconds();
  { const auto plan = open_plan(index, data); }
  fmt::print(stderr, "\n");
  print("dry_run", seconds_since(start), "s");
  print("dry_run_cpu", cpu_seconds() - dry_before, "s");
  ::malloc_trim(0);

  drop_caches(folder);
  start = Clock::now();
  const auto plan = open_plan(index, data);
  print("open_plan_with_its_table", seconds_since(start), "s");
  print("samples", static_cast<double>(index.num_samples()), "samples");
  print("steps_per_epoch", static_cast<double>(plan.steps_per_epoch()), "steps");
  print("windows", static_cast<double>(plan.num_windows()), "windows");

  constexpr int64_t kSteps = 320;
  const double read_before = proc_field("io", "read_bytes:");
  const double cpu_before = cpu_seconds();
  const double first = timed_select(plan, 0);
  const double first_cpu = 1e3 * (cpu_seconds() - cpu_before);
  double sum = first;
  for (int64_t step = 1; step < kSteps; ++step) sum += timed_select(plan, step);
  const double read = proc_field("io", "read_bytes:") - read_before;
  const auto window = plan.select(kSteps - 1, {}).window;
  double window_bytes = 0.0;
  for (int64_t w = 0; w <= window; ++w)
    window_bytes +=
        kSampleBytes * static_cast<double>(plan.order().windows()[static_cast<size_t>(w)].num_items);
  print("step_amortised", sum / static_cast<double>(kSteps), "ms", 5.0);
  print("step_amortised_cpu", 1e3 * (cpu_seconds() - cpu_before) / static_cast<double>(kSteps), "ms", 5.0);
  print("first_step", first, "ms");
  print("first_step_cpu", first_cpu, "ms");
  print("bytes_read_over_window_bytes", read / window_bytes, "ratio", 2.0);
  print("pss", proc_field("smaps_rollup", "Pss:") / 1024.0, "MiB", 64.0);

  drop_caches(folder);
  Rng rng(5);
  const double seeks_before = cpu_seconds();
  std::vector<double> seeks;
  for (int i = 0; i < 100; ++i)
    seeks.push_back(timed_select(
        plan, static_cast<int64_t>(rng.below(static_cast<uint64_t>(4 * plan.steps_per_epoch())))));
  std::sort(seeks.begin(), seeks.end());
  print("seek_median_over_first_step", seeks[50] / first, "ratio", 1.0);
  print("seek_worst_over_first_step", seeks.back() / first, "ratio");
  print("seek_mean_cpu_over_first_step", 10.0 * (cpu_seconds() - seeks_before) / first_cpu, "ratio");
  print("seek_median", seeks[50], "ms");
  print("pss_after_seeks", proc_field("smaps_rollup", "Pss:") / 1024.0, "MiB", 64.0);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: bench_planning FOLDER [MILLIONS]\n");
    return 2;
  }
  const fs::path folder = argv[1];
  const double wanted = 1e6 * (argc > 2 ? std::atof(argv[2]) : 1000.0);
  fs::create_directories(folder);
  const double room = static_cast<double>(fs::space(folder).available) - kFreeBytes;
  const double fits = std::min(wanted, std::max(2e6, room / kSampleBytes));
  if (fits < wanted)
    fmt::print(stderr, "planning: the disk has room for {:.0f} of {:.0f} million samples\n", fits / 1e6,
               wanted / 1e6);
  spec::DataOptions data;
  data.batch = kBatch;
  data.resolution = 512;
  data.bucket_step = 64;
  data.bucket_min = 256;
  data.bucket_max = 1024;
  make_data(folder, static_cast<int64_t>(fits) / kShardSamples * kShardSamples);
  measure(folder, data);
  return 0;
}
