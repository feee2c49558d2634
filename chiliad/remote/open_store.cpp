#include "chiliad/remote/open_store.h"

#include <cstdlib>
#include <utility>

#include "chiliad/remote/s3_store.h"
#include "chiliad/store/folder_store.h"

namespace chiliad::remote {
namespace {

std::optional<std::string> environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

std::unique_ptr<store::Store> open(const std::string& url, const store::Waiter& waiter, Nanoseconds stall,
                                   const std::string& profile = "") {
  if (!store::is_remote(url)) return std::make_unique<store::FolderStore>(url);
  if (url.starts_with("s3://"))
    return std::make_unique<S3Store>(url, s3_settings(with_profile(environment, profile)), waiter, stall);
  HttpStore::Options options;
  options.url = url;
  while (options.url.ends_with('/')) options.url.pop_back();
  options.base = options.url;
  options.stall_timeout = stall;
  return std::make_unique<HttpStore>(std::move(options), waiter);
}

}  // namespace

std::unique_ptr<store::Store> open_store(const std::string& url, const store::Waiter& waiter) {
  return open(url, waiter, HttpStore::Options().stall_timeout);
}

store::StoreFactory store_factory(double stall_s, std::map<std::string, std::string> profiles) {
  const Nanoseconds stall(static_cast<int64_t>(stall_s * 1e9));
  return [stall, profiles = std::move(profiles)](const std::string& url, const store::Waiter& waiter) {
    const auto found = profiles.find(url);
    return open(url, waiter, stall, found == profiles.end() ? "" : found->second);
  };
}

}  // namespace chiliad::remote
