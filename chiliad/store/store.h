#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chiliad/base/clock.h"
#include "chiliad/base/error.h"

namespace chiliad::store {

/// What a store says of an object.
struct ObjectInfo {
  std::string name;  ///< relative to the store
  int64_t size = 0;
  int64_t mtime_ns = 0;
  std::string identity;  ///< ETag, or empty; other bytes have another one
};

struct ListPage {
  std::vector<ObjectInfo> objects;
  std::string next;  ///< empty: there is no more
};

/// The store asks to slow down (429, 503): fewer requests at once, not before `retry_after`.
class StoreBusy : public Unavailable {
 public:
  StoreBusy(std::string place, const std::string& message, Nanoseconds retry_after)
      : Unavailable(std::move(place), message), retry_after_(retry_after) {}
  [[nodiscard]] Nanoseconds retry_after() const { return retry_after_; }

 private:
  Nanoseconds retry_after_;
};

/// Objects under one root: a folder, a web address, a bucket with a prefix. One call is one attempt: who
/// wants retries wraps it (reliable_store.h). All throw InvalidInput where the user can mend it (no such
/// object, access denied), Unavailable where trying again may help. Thread-safe.
class Store {
 public:
  virtual ~Store() = default;
  /// Its root, without credentials; for messages.
  [[nodiscard]] virtual const std::string& url() const = 0;
  [[nodiscard]] virtual ObjectInfo stat(const std::string& object, Nanoseconds timeout) = 0;
  /// Fills `out` from `offset`. Returns how many bytes there were: fewer only where the object ends.
  [[nodiscard]] virtual int64_t read(const std::string& object, int64_t offset, std::span<std::byte> out,
                                     Nanoseconds timeout) = 0;
  /// Objects after those of the page whose `next` is given (empty: from the first), in any order. Only where
  /// a user asks for it: listing a large store takes minutes.
  [[nodiscard]] virtual ListPage list(const std::string& next, Nanoseconds timeout) = 0;
};

class Waiter;

/// Opens the store with this root; calls of it end soon after `waiter`, which outlives it, was stopped.
/// Throws InvalidInput for a root that it does not know.
using StoreFactory = std::function<std::unique_ptr<Store>(const std::string& url, const Waiter& waiter)>;

/// Whether a root lies in no file system: s3://, http://, https://.
[[nodiscard]] bool is_remote(std::string_view root);

/// Whether `name` stays below a root: relative, without empty parts, `.` and `..`.
[[nodiscard]] bool is_plain_name(std::string_view name);

}  // namespace chiliad::store
