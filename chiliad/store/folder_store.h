#pragma once

#include <filesystem>

#include "chiliad/store/store.h"

namespace chiliad::store {

/// A folder of this machine, or of a mounted file system, as a store. Links to folders are not followed,
/// hidden files not listed. Timeouts are the file system's.
class FolderStore final : public Store {
 public:
  explicit FolderStore(const std::filesystem::path& folder);

  [[nodiscard]] const std::string& url() const override { return url_; }
  [[nodiscard]] ObjectInfo stat(const std::string& object, Nanoseconds timeout) override;
  [[nodiscard]] int64_t read(const std::string& object, int64_t offset, std::span<std::byte> out,
                             Nanoseconds timeout) override;
  [[nodiscard]] ListPage list(const std::string& next, Nanoseconds timeout) override;

 private:
  [[nodiscard]] std::filesystem::path path_of(const std::string& object) const;
  std::filesystem::path folder_;
  std::string url_;
};

}  // namespace chiliad::store
