#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "chiliad/dataset/detail/loose_files.h"
#include "chiliad/store/store.h"

namespace chiliad::dataset::detail {

/// What lies in a store, as list_source says it of a folder. `names`: only these, asked for one by one;
/// empty: all that the store lists, but hidden ones.
[[nodiscard]] SourceListing list_objects(store::Store& source, const std::vector<std::string>& names);

/// The layout that such a listing looks like by its names alone. Throws as detect_layout.
[[nodiscard]] std::string detect_remote_layout(const SourceListing& listing);

/// Copies of a shard's files on this machine while they are read, with the sizes and times of the store's.
class Staging {
 public:
  /// Empties `folder`, which is ours.
  Staging(store::Store& source, std::filesystem::path folder);
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  /// Throws Unavailable where a file is not the one that was listed any more.
  void fetch(const std::vector<index::SourceFile>& files);
  void clear();
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }

 private:
  void fetch(const index::SourceFile& file);

  store::Store& source_;
  std::filesystem::path folder_;
};

}  // namespace chiliad::dataset::detail
