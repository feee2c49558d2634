#include "chiliad/store/block_fetcher.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

namespace chiliad::store {
namespace {

/// A slow line brings so much within the time of one attempt.
constexpr int64_t kRequestBytes = 32 << 20;

}  // namespace

ReliableStore& BlockFetcher::store_of(const std::string& url) {
  std::lock_guard lock(mutex_);
  auto& store = stores_[url];
  if (store == nullptr) store = std::make_unique<ReliableStore>(open_store_(url, waiter_), options_, waiter_);
  return *store;
}

int64_t BlockFetcher::read(const std::string& url, const std::string& object, int64_t offset,
                           std::span<std::byte> out) {
  ReliableStore& store = store_of(url);
  int64_t done = 0;
  while (done < static_cast<int64_t>(out.size())) {
    const auto rest = out.subspan(static_cast<size_t>(done));
    const auto part = rest.first(std::min<size_t>(rest.size(), kRequestBytes));
    const int64_t got = store.read(object, offset + done, part, options_.attempt_timeout);
    done += got;
    if (got < static_cast<int64_t>(part.size())) break;
  }
  return done;
}

FetchedBlock BlockFetcher::fetch(const BlockSpec& spec) {
  ReliableStore& store = store_of(spec.store);
  const Nanoseconds until = store.deadline_from_now();
  std::optional<Digest> wrong_before;
  for (int attempt = 1;; ++attempt) {
    FetchedBlock fetched;
    fetched.bytes.resize(static_cast<size_t>(spec.length));
    const int64_t got = read(spec.store, spec.object, spec.offset, fetched.bytes);
    fetched.bytes.resize(static_cast<size_t>(got));
    const int64_t wrong = first_wrong_part(spec, fetched.bytes);
    if (wrong < 0) return fetched;
    ++wrong_bytes_;
    const Digest digest = hash128(fetched.bytes);
    if (digest == wrong_before) {
      fetched.damaged = true;
      return fetched;
    }
    wrong_before = digest;
    const PartCheck& part = spec.parts[static_cast<size_t>(wrong)];
    store.pause(spec.object, attempt, until,
                fmt::format("{} bytes at {} arrived wrong", part.length, part.offset));
  }
}

RequestStats BlockFetcher::stats() const {
  std::lock_guard lock(mutex_);
  RequestStats sum;
  for (const auto& [url, store] : stores_) {
    const RequestStats own = store->stats();
    sum.requests += own.requests;
    sum.failed += own.failed;
    sum.slow_down += own.slow_down;
    sum.bytes += own.bytes;
  }
  return sum;
}

}  // namespace chiliad::store
