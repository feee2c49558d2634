#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "chiliad/remote/http_store.h"

namespace chiliad::remote {

/// What is known of S3 before any request.
struct S3Settings {
  std::string endpoint{};  ///< address of a server that is not Amazon's; empty: Amazon's
  std::string region{"us-east-1"};
  Credentials credentials{};
};

/// Reads a variable of the environment; nothing where it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

/// The environment as a store with a profile of its own sees it: the profile says keys, region and address;
/// no variable AWS_... does, but those that say where profiles lie. No profile: as it is.
[[nodiscard]] Environment with_profile(Environment environment, const std::string& profile);

/// From AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, else profile AWS_PROFILE of
/// ~/.aws/credentials; AWS_REGION, else ~/.aws/config; AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL, else
/// endpoint_url of the profile there. Throws InvalidInput where half of a key is there, or a named profile is
/// not.
[[nodiscard]] S3Settings s3_settings(const Environment& environment);

/// Objects of a bucket below a prefix: "s3://bucket/prefix".
class S3Store final : public HttpStore {
 public:
  S3Store(const std::string& url, const S3Settings& settings, const store::Waiter& waiter,
          Nanoseconds stall_timeout = Options().stall_timeout);
  [[nodiscard]] store::ListPage list(const std::string& next, Nanoseconds timeout) override;

 private:
  std::string bucket_address_;
  std::string prefix_;  // with a last slash, or empty
};

}  // namespace chiliad::remote
