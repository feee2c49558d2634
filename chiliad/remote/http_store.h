#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "chiliad/store/store.h"
#include "chiliad/store/waiter.h"

namespace chiliad::remote {

/// Key and secret of S3; empty: requests are not signed. Never written anywhere.
struct Credentials {
  std::string key{};
  std::string secret{};
  std::string session_token{};
};

/// A web address whose objects answer range requests, plain or signed as S3 wants it.
class HttpStore : public store::Store {
 public:
  struct Options {
    std::string url{};     ///< for messages; the root that users know
    std::string base{};    ///< http:// or https:// address of the root, percent-encoded, without a last slash
    std::string region{};  ///< not empty: signed as AWS signature version 4 for the service s3
    Credentials credentials{};
    Nanoseconds connect_timeout = std::chrono::seconds(10);
    Nanoseconds stall_timeout = std::chrono::seconds(10);  ///< without a byte for so long: given up
  };
  /// `waiter` outlives it. Throws InvalidInput for an address that holds a password or is none.
  HttpStore(Options options, const store::Waiter& waiter);
  ~HttpStore() override;
  HttpStore(const HttpStore&) = delete;
  HttpStore& operator=(const HttpStore&) = delete;

  [[nodiscard]] const std::string& url() const override { return options_.url; }
  [[nodiscard]] store::ObjectInfo stat(const std::string& object, Nanoseconds timeout) override;
  [[nodiscard]] int64_t read(const std::string& object, int64_t offset, std::span<std::byte> out,
                             Nanoseconds timeout) override;
  /// A web server has no list: InvalidInput.
  [[nodiscard]] store::ListPage list(const std::string& next, Nanoseconds timeout) override;

 protected:
  struct Answer {
    int64_t status = 0;
    int64_t length = -1;  ///< of the whole object, where the answer says so
    int64_t first = 0;    ///< of a range: its first byte
    int64_t last = -1;
    int64_t mtime_ns = 0;
    Nanoseconds retry_after{0};
    std::string etag{};
    std::string text{};  ///< of errors and lists
    int64_t received = 0;
  };
  /// One request. `address` is all of it; `out` takes the body of 200 and 206, null: the text does.
  [[nodiscard]] Answer request(const std::string& place, const std::string& address, bool head,
                               const std::string& range, std::span<std::byte>* out, Nanoseconds timeout);
  /// Throws what an answer other than 2xx means.
  static void check(const std::string& place, const Answer& answer);
  [[nodiscard]] const Options& options() const { return options_; }

 private:
  class Handles;
  [[nodiscard]] std::string place_of(const std::string& object) const { return options_.url + "/" + object; }
  [[nodiscard]] std::string address_of(const std::string& object) const;

  const Options options_;
  const store::Waiter& waiter_;
  std::unique_ptr<Handles> handles_;
};

/// Each byte but letters, digits and -._~ as %XX; slashes stay where `keep_slashes`.
[[nodiscard]] std::string percent_encoded(std::string_view text, bool keep_slashes);

}  // namespace chiliad::remote
