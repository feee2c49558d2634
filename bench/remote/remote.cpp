// Two ranks of one machine read a set through the block cache from a server on the loopback, which then
// fails.
//   bench_remote [PICTURES]
#include <fmt/core.h>

#include <array>
#include <barrier>
#include <charconv>
#include <cstring>
#include <thread>

#include "chiliad/base/clock.h"
#include "chiliad/base/error.h"
#include "chiliad/loader/cached_parts.h"
#include "chiliad/loader/loader.h"
#include "tests/support/remote_set.h"
#include "tests/support/synthetic_index.h"

namespace chiliad {
namespace {

using Kind = test::HttpFault::Kind;
constexpr int kRanks = 2;
constexpr int64_t kEpochs = 2;
constexpr int64_t kBlockBytes = 1 << 20;

struct Run {
  double seconds = 0.0;
  int64_t requests = 0;
  int64_t failed = 0;
  int64_t bytes = 0;
};

class Bench {
 public:
  explicit Bench(int64_t pictures) : set_(pictures, kBlockBytes, 16 << 20), pictures_(pictures) {
    set_.make_index();
    index_.emplace(set_.remote());
    spec::DataOptions options;
    options.batch = 64;
    options.window_blocks = 4;
    plan_.emplace(*index_, options, 11, test::byte_tokens(*index_));
  }

  /// Two epochs on both ranks; the cache is empty at first.
  Run run(const test::HttpServer::Faults& faults, int64_t cache_bytes) {
    std::filesystem::remove_all(set_.cache_folder());
    set_.server().set_faults(faults);
    const SystemClock clock;
    const Nanoseconds start = clock.now();
    const auto owner = set_.own(cache_bytes);
    const auto blocks = std::make_shared<loader::PartBlocks>(*index_);  // with the owner's thread
    const int64_t end = kEpochs * plan_->steps_per_epoch();
    owner->plan_ahead(0, [&, end](int64_t step) -> std::optional<std::vector<store::BlockSpec>> {
      if (step >= end) return std::nullopt;
      return blocks->blocks_of(plan_->select(step, {}));
    });
    std::barrier step_done(kRanks);  // ranks that train go step by step, too
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < kRanks; ++rank)
      ranks.emplace_back([&, rank] { read(rank, end, step_done, rank == 0 ? owner.get() : nullptr); });
    for (std::thread& rank : ranks) rank.join();
    const double seconds = to_seconds(clock.now() - start);
    owner->close();
    owner->cache().check_ledger();
    const auto requests = owner->requests();
    return {seconds, requests.requests, requests.failed, requests.bytes};
  }

  [[nodiscard]] int64_t share() const { return set_.num_bytes(); }
  [[nodiscard]] int64_t samples() const { return kEpochs * pictures_; }

 private:
  void read(int rank, int64_t end, std::barrier<>& step_done, store::CacheOwner* owner) {
    loader::LoaderOptions options;
    options.rank = rank;
    options.num_threads = 1;
    options.pack.num_ranks = kRanks;
    options.pack.max_items = 32;
    options.pack.work = test::transformer_work();
    options.source = std::make_shared<loader::CachedParts>(
        *index_, store::CacheClient::Options{set_.cache_folder(), std::chrono::seconds(300), {}});
    options.read_deadline = std::chrono::seconds(300);
    loader::Loader loading(*index_, *plan_, {}, 0, end, options);
    for (int64_t step = 0; step < end; ++step) {
      static_cast<void>(loading.next());
      step_done.arrive_and_wait();
      if (owner != nullptr) owner->reached(step);
    }
    CHILIAD_CHECK_EQ(loading.stats().bad_items, 0);
  }

  test::RemoteSet set_;
  int64_t pictures_;
  std::optional<index::Index> index_;
  std::optional<stepplan::Plan> plan_;
};

bool print(const std::string& metric, double value, const char* unit, double target = 0.0) {
  const bool ok = target == 0.0 || value <= target;
  fmt::print(R"({{"bench":"remote","metric":"{}","value":{:.4g},"unit":"{}","target":{},"ok":{}}})"
             "\n",
             metric, value, unit, target == 0.0 ? "null" : fmt::format("{:g}", target),
             target == 0.0 ? "null"
             : ok          ? "true"
                           : "false");
  return ok;
}

/// Every tenth request fails, by turns in each way.
test::HttpFault tenth_fails(const test::HttpRequest& request) {
  if (request.number % 10 != 3) return {};
  constexpr std::array kKinds{Kind::kStatus, Kind::kDrop, Kind::kShort, Kind::kShortRange, Kind::kFlip};
  return {.kind = kKinds[static_cast<size_t>(request.number / 10) % kKinds.size()], .status = 500};
}

test::HttpFault tenth_stalls(const test::HttpRequest& request) {
  if (request.number % 10 != 3) return {};
  return {.kind = Kind::kStall, .stall = std::chrono::seconds(30)};
}

test::HttpFault storm(const test::HttpRequest& request) {
  if (request.number > 40) return {};
  return {.kind = Kind::kStatus, .status = 503};
}

int run(int64_t pictures) {
  Bench bench(pictures);
  const auto per_share = [&](const Run& one, double epochs) {
    return static_cast<double>(one.bytes) / (epochs * static_cast<double>(bench.share()));
  };
  const auto per_sample = [&](const Run& one) {
    return static_cast<double>(one.requests) / static_cast<double>(bench.samples());
  };
  const int64_t all = 2 * bench.share();
  const Run clean = bench.run({}, all);
  bool ok = print("bytes_per_share", per_share(clean, 1.0), "", 1.1);
  ok &= print("requests_per_sample", per_sample(clean), "", 0.1);
  const Run small = bench.run({}, bench.share() / 2);
  ok &= print("small_cache_bytes_per_share_and_epoch", per_share(small, kEpochs), "", 1.1);
  ok &= print("small_cache_requests_per_sample", per_sample(small), "", 0.1);
  const Run failing = bench.run(tenth_fails, all);
  ok &= print("failing_bytes_per_share", per_share(failing, 1.0), "", 1.25);
  print("clean_seconds", clean.seconds, "s");
  print("failing_seconds_lost", failing.seconds - clean.seconds, "s");
  const Run stalling = bench.run(tenth_stalls, all);
  print("stalling_failed_requests", static_cast<double>(stalling.failed), "");
  print("stalling_seconds_lost", stalling.seconds - clean.seconds, "s");
  const Run busy = bench.run(storm, all);
  print("storm_seconds_lost", busy.seconds - clean.seconds, "s");
  return ok ? 0 : 1;
}

}  // namespace
}  // namespace chiliad

int main(int argc, char** argv) {
  int64_t pictures = 6000;
  if (argc > 1) std::from_chars(argv[1], argv[1] + std::strlen(argv[1]), pictures);
  try {
    return chiliad::run(pictures);
  } catch (const std::exception& error) {
    fmt::print(stderr, "remote: {}\n", error.what());
    return 1;
  }
}
