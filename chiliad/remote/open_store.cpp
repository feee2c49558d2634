#include "chiliad/remote/open_store.h"

#include <cstdlib>

#include "chiliad/remote/s3_store.h"
#include "chiliad/store/folder_store.h"

namespace chiliad::remote {
namespace {

std::optional<std::string> environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

}  // namespace

std::unique_ptr<store::Store> open_store(const std::string& url, const store::Waiter& waiter) {
  if (!store::is_remote(url)) return std::make_unique<store::FolderStore>(url);
  if (url.starts_with("s3://")) return std::make_unique<S3Store>(url, s3_settings(environment), waiter);
  HttpStore::Options options;
  options.url = url;
  while (options.url.ends_with('/')) options.url.pop_back();
  options.base = options.url;
  return std::make_unique<HttpStore>(std::move(options), waiter);
}

}  // namespace chiliad::remote
