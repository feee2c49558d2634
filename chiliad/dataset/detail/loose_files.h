#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "chiliad/dataset/detail/draft.h"
#include "chiliad/spec/mixture_file.h"

namespace chiliad::dataset::detail {

/// A file of conversations that a mixture names, and which of its records are taken.
struct MixtureFile {
  index::SourceFile file;
  spec::Sampling sampling;
};

/// The files under a source by what they are, each list sorted by the bytes of the path. Hidden files and
/// folders (a leading dot) are passed over, symbolic links to folders are not followed.
struct SourceListing {
  std::filesystem::path root;  ///< absolute; paths of files are relative to it
  std::vector<index::SourceFile> images;
  std::vector<index::SourceFile> texts;     ///< *.txt
  std::vector<index::SourceFile> captions;  ///< *.caption
  std::vector<index::SourceFile> tars;
  std::vector<index::SourceFile> lines;   ///< *.jsonl
  std::vector<index::SourceFile> lists;   ///< *.json
  std::vector<index::SourceFile> tables;  ///< metadata.jsonl, metadata.csv; or one *.csv or *.tsv
  std::vector<MixtureFile> mixture;       ///< of a mixture, in its order; all other lists are then empty
  std::filesystem::path images_folder;    ///< absolute; empty: pictures lie beside the file that names them
};

/// Lists a folder, or one .tar, .jsonl, .json, .csv or .tsv file, or what a mixture names (.yaml, .json).
/// `images`: where a file's pictures lie, may be empty; the root is the deepest folder that holds all. Throws
/// InvalidInput if `source` is none of these, or a mixture names a file that is not there.
[[nodiscard]] SourceListing list_source(const std::filesystem::path& source,
                                        const std::filesystem::path& images);

/// Adds a file to the list of its kind, by its name; others are passed over.
void add_source_file(SourceListing& listing, index::SourceFile file);
[[nodiscard]] SourceListing sorted(SourceListing listing);

/// The layout that the listing looks like, as in IndexOptions::layout. Throws InvalidInput if the source
/// holds no sample, or both tars and pictures.
[[nodiscard]] std::string detect_layout(const SourceListing& listing);

/// Pairs pictures with the captions beside them (.txt, else .caption) and cuts the list into shards of about
/// `shard_bytes`.
[[nodiscard]] std::vector<ShardDraft> draft_loose_shards(const SourceListing& listing,
                                                         index::MediaType text_media, int64_t shard_bytes);

/// How often kohya's trainer takes a picture in an epoch: N of the folder N_name that it lies in; nothing
/// where it lies in none.
[[nodiscard]] std::optional<int> kohya_repeats(const std::string& path);

/// The same with as many samples of a picture as its folder says; the second is KEY#2, and so on. Pictures
/// elsewhere are added to `unnamed`.
[[nodiscard]] std::vector<ShardDraft> draft_kohya_shards(const SourceListing& listing, int64_t shard_bytes,
                                                         std::vector<BadSample>& unnamed);

}  // namespace chiliad::dataset::detail
