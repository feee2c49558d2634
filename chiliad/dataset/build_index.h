#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "chiliad/index/index.h"
#include "chiliad/index/part_source.h"
#include "chiliad/store/store.h"
#include "chiliad/text/document_encoder.h"

namespace chiliad::dataset {

struct IndexOptions {
  std::string layout = "auto";  ///< auto or one of layout_names()
  int64_t block_bytes = 8 << 20;
  int64_t shard_bytes = 512LL << 20;  ///< loose files are cut into shards of about this payload
  int threads = 2;
  bool replace = false;          ///< `out` may hold the index of another source, which is lost
  std::filesystem::path images;  ///< folder of the pictures that a .json, .jsonl, .csv or .tsv names
  std::string image_key;         ///< field of the picture's name; empty: file_name, image, path, ...
  std::string caption_key;       ///< field of the caption in JSON and CSV; empty: caption, text, prompt
};

/// tuxpaint: pictures, captions by language beside them. image_text: pictures, .txt or .caption beside them.
/// kohya: the same in folders N_name, each picture N times. webdataset: tars. table: rows that name pictures
/// and captions (metadata.jsonl, .csv, .tsv, .json). conversations: LLaVA's records (.json, .jsonl). jsonl,
/// text: documents.
[[nodiscard]] const std::vector<std::string>& layout_names();

/// A sample that cannot be used, and why; one line of bad.jsonl.
struct BadSample {
  std::string key;
  std::string file;
  std::string reason;
};

struct IndexReport {
  index::Manifest manifest;
  std::vector<BadSample> bad;
  int64_t bytes_read = 0;
  int64_t shards_reused = 0;  ///< finished by an earlier, interrupted call
};

/// Progress of a long job: done and total in bytes; total 0 while unknown.
using Progress = std::function<void(int64_t done, int64_t total)>;

/// Reads the data set under `source` where it lies (nothing is written there) and writes its index into
/// `out`: shards/*.chidx, bad.jsonl, manifest.json last. Parallel and resumable: a shard whose sidecar is
/// already there and whose files have the same sizes and times is not read again. bad.jsonl has one line a
/// bad sample or damaged place of an archive; pictures without a caption are in it too, though they stay
/// usable (flag kNoCaption). Throws InvalidInput if `source` holds no file of the layout, is no tar, `out`
/// lies inside it, or holds the index of another source; tars without members give an empty index.
IndexReport build_index(const std::filesystem::path& source, const std::filesystem::path& out,
                        const IndexOptions& options, const Progress& progress);

/// The same of a store: all that it lists, or the objects of these names. A shard's files are copied into
/// `out` while they are read, one shard at a time. Not for the layouts table and conversations.
IndexReport build_remote_index(store::Store& source, const std::vector<std::string>& names,
                               const std::filesystem::path& out, const IndexOptions& options,
                               const Progress& progress);

/// Makes the token column of every shard that lacks it. Returns how many were made. `source`: where the parts
/// of a remote index come from; null: files.
int64_t build_token_columns(const index::Index& index, int64_t max_tokens, const Progress& progress,
                            index::PartSource* source = nullptr);
/// The same of documents: all tokens that `encoder` makes of each, uncut.
int64_t build_document_columns(const index::Index& index, const text::DocumentEncoder& encoder,
                               const Progress& progress, index::PartSource* source = nullptr);

}  // namespace chiliad::dataset
