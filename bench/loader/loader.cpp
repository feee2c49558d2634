// How soon the loader hands over its first batch, how much memory it takes, and what share of the time a
// consumer waits that is given one thread and one step ahead, with and without tuning. The consumer sleeps in
// place of a device, three quarters of the time that one thread needs for a step: it takes two threads not to
// wait. Pictures are made for it.
#include <fmt/core.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "chiliad/base/rng.h"
#include "chiliad/dataset/build_index.h"
#include "chiliad/image/encode.h"
#include "chiliad/io/file.h"
#include "chiliad/loader/loader.h"
#include "tests/support/synthetic_index.h"

namespace {

using namespace chiliad;
namespace fs = std::filesystem;

constexpr int kPictures = 512;
constexpr int64_t kBatch = 64;
constexpr int32_t kWidth = 512;
constexpr int32_t kHeight = 384;

/// Slopes with some noise: about as dense as a photo.
HostArray made_picture(int number) {
  HostArray picture(DType::kU8, Shape{kHeight, kWidth, 3});
  Rng rng({static_cast<uint64_t>(number)});
  const auto pixels = picture.as<uint8_t>();
  for (size_t i = 0; i < pixels.size(); ++i)
    pixels[i] = static_cast<uint8_t>((i / 3 % kWidth) / 3 + (i / 3 / kWidth) / 5 + rng.below(24));
  return picture;
}

void write_set(const fs::path& folder) {
  fs::create_directories(folder);
  for (int i = 0; i < kPictures; ++i) {
    io::write_atomic(folder / fmt::format("{:04}.jpg", i), image::encode_jpeg(made_picture(i), 85));
    std::ofstream(folder / fmt::format("{:04}.txt", i)) << "picture " << i;
  }
}

/// MiB of the process, shared pages by their share.
double pss_mib() {
  std::ifstream file("/proc/self/smaps_rollup");
  std::string line;
  while (std::getline(file, line)) {
    if (line.rfind("Pss:", 0) == 0) return std::stod(line.substr(4)) / 1024.0;
  }
  return 0.0;
}

spec::DataOptions data_options() {
  spec::DataOptions data;
  data.batch = kBatch;
  data.resolution = 256;
  data.bucket_step = 64;
  data.bucket_min = 128;
  data.bucket_max = 512;
  return data;
}

loader::LoaderOptions loader_options(int threads, int64_t ahead) {
  loader::LoaderOptions options;
  options.num_threads = threads;
  options.prefetch_steps = ahead;
  options.pack.max_items = kBatch;
  options.pack.work = test::transformer_work();
  return options;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void first_batch(const fs::path& folder) {
  const auto start = std::chrono::steady_clock::now();
  const auto index = index::Index::open(folder);
  const stepplan::Plan plan(index, data_options(), 1, test::byte_tokens(index));
  loader::Loader loader(index, plan, {}, 0, 1000, loader_options(2, 4));
  (void)loader.next();
  fmt::print("{{\"bench\":\"loader\",\"first_batch_s\":{:.4f}}}\n", seconds_since(start));
}

/// Of one thread, for a step.
double load_seconds(const index::Index& index, const stepplan::Plan& plan) {
  loader::Loader loader(index, plan, {}, 0, 9, loader_options(1, 1));
  (void)loader.next();
  const auto start = std::chrono::steady_clock::now();
  for (int step = 1; step < 9; ++step) (void)loader.next();
  return seconds_since(start) / 8.0;
}

void consume(const index::Index& index, const stepplan::Plan& plan, bool tune, int64_t steps, double step_s) {
  auto options = loader_options(1, 1);
  options.tune = tune;
  loader::Loader loader(index, plan, {}, 0, steps, options);
  (void)loader.next();
  auto start = std::chrono::steady_clock::now();
  double before = loader.stats().wait_seconds;
  for (int64_t step = 1; step < steps; ++step) {
    const auto held = loader.next();
    std::this_thread::sleep_for(std::chrono::duration<double>(step_s));
    if (step != steps / 2 && step != steps - 1) continue;
    const auto stats = loader.stats();
    fmt::print(
        "{{\"bench\":\"loader\",\"tune\":{},\"half\":{},\"wait_share\":{:.4f},\"threads\":{},\"steps_ahead\":"
        "{},"
        "\"changes\":{},\"slab_mib\":{:.1f},\"pss_mib\":{:.1f}}}\n",
        tune, step == steps / 2 ? 1 : 2, (stats.wait_seconds - before) / seconds_since(start), stats.threads,
        stats.prefetch_steps, stats.tuner_changes, static_cast<double>(stats.slab.allocated) / (1 << 20),
        pss_mib());
    start = std::chrono::steady_clock::now();
    before = stats.wait_seconds;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t steps = argc > 1 ? std::atoll(argv[1]) : 120;
  const fs::path folder = fs::temp_directory_path() / fmt::format("chiliad-bench-loader-{}", ::getpid());
  write_set(folder / "pictures");
  (void)dataset::build_index(folder / "pictures", folder / "index", {}, [](int64_t, int64_t) {});
  for (int round = 0; round < 3; ++round) first_batch(folder / "index");
  {
    const auto index = index::Index::open(folder / "index");
    const stepplan::Plan plan(index, data_options(), 1, test::byte_tokens(index));
    const double step_s = 0.75 * load_seconds(index, plan);
    consume(index, plan, false, steps, step_s);
    consume(index, plan, true, steps, step_s);
  }
  fs::remove_all(folder);
  return 0;
}
