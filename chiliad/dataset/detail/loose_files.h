#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "chiliad/dataset/detail/draft.h"

namespace chiliad::dataset::detail {

/// The files under a source by what they are, each list sorted by the bytes of the path. Hidden files and
/// folders (a leading dot) are passed over, symbolic links to folders are not followed.
struct SourceListing {
  std::filesystem::path root;  ///< absolute; paths of files are relative to it
  std::vector<index::SourceFile> images;
  std::vector<index::SourceFile> texts;  ///< *.txt
  std::vector<index::SourceFile> tars;
  std::vector<index::SourceFile> lines;  ///< *.jsonl
};

/// Lists a folder, or one tar or .jsonl file. Throws InvalidInput if `source` is neither.
[[nodiscard]] SourceListing list_source(const std::filesystem::path& source);

/// tuxpaint, image_text or webdataset; where there are neither pictures nor tars, jsonl or text. Throws
/// InvalidInput if the source holds no sample, or both tars and pictures.
[[nodiscard]] std::string detect_layout(const SourceListing& listing);

/// Pairs pictures with the captions beside them and cuts the list into shards of about `shard_bytes`.
[[nodiscard]] std::vector<ShardDraft> draft_loose_shards(const SourceListing& listing,
                                                         index::MediaType text_media, int64_t shard_bytes);

}  // namespace chiliad::dataset::detail
