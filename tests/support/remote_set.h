#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "chiliad/index/index.h"
#include "chiliad/store/cache_owner.h"
#include "tests/support/http_server.h"
#include "tests/support/temp_dir.h"

namespace chiliad::test {

/// A set of pictures in tars, here and behind a server on the loopback, with an index of each.
class RemoteSet {
 public:
  explicit RemoteSet(int64_t num_pictures, int64_t block_bytes = 32 << 10, int64_t tar_bytes = 200 << 10);

  /// Indexes what the server holds into index_folder().
  void make_index();
  [[nodiscard]] index::Index local() const;
  [[nodiscard]] index::Index remote() const;
  [[nodiscard]] std::filesystem::path index_folder() const { return folder_.path() / "remote.index"; }
  [[nodiscard]] std::filesystem::path cache_folder() const { return folder_.path() / "cache"; }
  [[nodiscard]] std::string root() const { return server_.address() + "/set"; }
  [[nodiscard]] HttpServer& server() { return server_; }
  /// Bytes of the tars.
  [[nodiscard]] int64_t num_bytes() const { return num_bytes_; }
  /// An owner of cache_folder(); stalls end after 300 ms.
  [[nodiscard]] std::unique_ptr<store::CacheOwner> own(int64_t max_bytes,
                                                       store::RetryOptions retry = {}) const;

 private:
  TempDir folder_;
  HttpServer server_;
  int64_t num_bytes_ = 0;
  int64_t block_bytes_;
};

}  // namespace chiliad::test
