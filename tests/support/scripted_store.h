#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "chiliad/store/store.h"
#include "chiliad/store/waiter.h"

namespace chiliad::test {

/// Time that passes only by waiting.
class FakeWaiter final : public store::Waiter {
 public:
  [[nodiscard]] Nanoseconds now() const override { return Nanoseconds(now_.load()); }
  [[nodiscard]] bool wait(Nanoseconds time) override {
    now_ += time.count();
    return !stopped();
  }

 private:
  std::atomic<int64_t> now_{0};
};

/// Objects in memory; `before` may throw, or change what was read, of the n-th read.
class ScriptedStore final : public store::Store {
 public:
  using Script = std::function<void(int64_t read, std::span<std::byte> bytes)>;
  explicit ScriptedStore(std::map<std::string, std::string> objects, Script script = {})
      : objects_(std::move(objects)), script_(std::move(script)) {}

  [[nodiscard]] const std::string& url() const override { return url_; }
  [[nodiscard]] store::ObjectInfo stat(const std::string& object, Nanoseconds) override {
    return {object, static_cast<int64_t>(bytes_of(object).size()), 1, "one"};
  }
  [[nodiscard]] int64_t read(const std::string& object, int64_t offset, std::span<std::byte> out,
                             Nanoseconds) override {
    const std::string& bytes = bytes_of(object);
    const int64_t there =
        std::clamp<int64_t>(static_cast<int64_t>(bytes.size()) - offset, 0, static_cast<int64_t>(out.size()));
    const auto part =
        std::as_bytes(std::span(bytes)).subspan(static_cast<size_t>(offset), static_cast<size_t>(there));
    std::copy(part.begin(), part.end(), out.begin());
    bytes_read_ += there;
    const int64_t number = reads_++;
    if (script_) script_(number, out.first(static_cast<size_t>(there)));
    return there;
  }
  [[nodiscard]] store::ListPage list(const std::string&, Nanoseconds timeout) override {
    store::ListPage page;
    for (const auto& [name, bytes] : objects_) page.objects.push_back(stat(name, timeout));
    return page;
  }
  [[nodiscard]] int64_t reads() const { return reads_.load(); }
  [[nodiscard]] int64_t bytes_read() const { return bytes_read_.load(); }

 private:
  const std::string& bytes_of(const std::string& object) const {
    const auto found = objects_.find(object);
    if (found == objects_.end()) throw InvalidInput(url_ + "/" + object, "there is no such object");
    return found->second;
  }
  const std::string url_ = "test://store";
  const std::map<std::string, std::string> objects_;
  const Script script_;
  std::atomic<int64_t> reads_{0};
  std::atomic<int64_t> bytes_read_{0};
};

}  // namespace chiliad::test
