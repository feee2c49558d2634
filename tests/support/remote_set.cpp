#include "tests/support/remote_set.h"

#include "chiliad/dataset/build_tars.h"
#include "chiliad/io/file.h"
#include "chiliad/remote/open_store.h"
#include "chiliad/store/reliable_store.h"
#include "tests/support/picture_set.h"

namespace chiliad::test {
namespace fs = std::filesystem;

RemoteSet::RemoteSet(int64_t num_pictures, int64_t block_bytes, int64_t tar_bytes)
    : block_bytes_(block_bytes) {
  write_pictures(folder_.path() / "pictures", num_pictures);
  index_pictures(folder_.path() / "pictures", folder_.path() / "loose.index");
  dataset::TarOptions tars;
  tars.tar_bytes = tar_bytes;
  tars.threads = 1;
  const auto built = folder_.path() / "built";
  static_cast<void>(dataset::build_tars(index::Index::open(folder_.path() / "loose.index"), built, tars, {}));
  for (const auto& entry : fs::directory_iterator(built / "tars")) {
    if (entry.path().extension() != ".tar") continue;
    const std::string text = io::read_text(entry.path(), int64_t{1} << 30);
    num_bytes_ += static_cast<int64_t>(text.size());
    server_.put("set/" + entry.path().filename().string(), text);
  }
  dataset::IndexOptions options;
  options.block_bytes = block_bytes_;
  options.threads = 1;
  static_cast<void>(dataset::build_index(built / "tars", folder_.path() / "local.index", options, {}));
}

void RemoteSet::make_index() {
  store::Waiter waiter;
  store::ReliableStore source(remote::open_store(root(), waiter), {}, waiter);
  const auto local_index = local();
  std::vector<std::string> names;
  for (const index::Shard& shard : local_index.shards()) names.push_back(shard.files.front().path);
  dataset::IndexOptions options;
  options.block_bytes = block_bytes_;
  options.threads = 1;
  static_cast<void>(dataset::build_remote_index(source, names, index_folder(), options, {}));
}

index::Index RemoteSet::local() const {
  return index::Index::open(folder_.path() / "local.index");
}

index::Index RemoteSet::remote() const {
  return index::Index::open(index_folder());
}

std::unique_ptr<store::CacheOwner> RemoteSet::own(int64_t max_bytes, store::RetryOptions retry) const {
  store::CacheOptions options;
  options.folder = cache_folder();
  options.max_bytes = max_bytes;
  options.retry = retry;
  constexpr double kStall = 0.3;
  return std::make_unique<store::CacheOwner>(options, remote::store_factory(kStall));
}

}  // namespace chiliad::test
