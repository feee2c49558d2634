#include "chiliad/store/folder_store.h"

#include <fmt/core.h>

#include "chiliad/io/file.h"

namespace chiliad::store {
namespace fs = std::filesystem;

FolderStore::FolderStore(const fs::path& folder) : folder_(folder), url_(folder.string()) {
  if (!fs::is_directory(folder)) throw InvalidInput(url_, "is no folder. Name one that exists");
}

fs::path FolderStore::path_of(const std::string& object) const {
  if (is_plain_name(object)) return folder_ / object;
  throw InvalidInput(url_, fmt::format("'{}' is no name of a file below it", object));
}

ObjectInfo FolderStore::stat(const std::string& object, Nanoseconds) {
  const fs::path path = path_of(object);
  const auto stamp = io::stat_file(path);
  if (!stamp.has_value()) throw InvalidInput(path.string(), "there is no such file. Put it back");
  return {object, stamp->size, stamp->mtime_ns, fmt::format("{}-{}", stamp->size, stamp->mtime_ns)};
}

int64_t FolderStore::read(const std::string& object, int64_t offset, std::span<std::byte> out, Nanoseconds) {
  return io::File::open_read(path_of(object)).read_some_at(offset, out);
}

ListPage FolderStore::list(const std::string&, Nanoseconds timeout) {
  ListPage page;
  for (auto it = fs::recursive_directory_iterator(folder_); it != fs::recursive_directory_iterator(); ++it) {
    const bool hidden = it->path().filename().string().starts_with('.');
    if (hidden && it->is_directory()) it.disable_recursion_pending();
    if (hidden || !it->is_regular_file()) continue;
    page.objects.push_back(stat(it->path().lexically_relative(folder_).string(), timeout));
  }
  return page;
}

}  // namespace chiliad::store
