#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "chiliad/dataset/build_index.h"
#include "chiliad/index/index.h"

namespace chiliad::dataset {

struct TarOptions {
  int64_t tar_bytes = 512LL << 20;  ///< a tar ends with the sample that reaches it
  int threads = 2;
  std::string where;         ///< condition over columns (where_columns()); empty: all samples
  int64_t longest_side = 0;  ///< larger pictures are resized to it; 0: no limit
  int64_t shortest_side = 0;
  int quality = 95;      ///< of JPEG where a picture is resized
  bool baseline = true;  ///< progressive JPEG becomes baseline JPEG with the same pixels
  int duplicate_bits =
      -1;  ///< pictures whose hashes differ in at most so many of 64 bits are dropped; -1: none
};

struct TarReport {
  int64_t num_samples = 0;  ///< written
  int64_t num_tars = 0;
  int64_t tars_reused = 0;  ///< finished by an earlier, interrupted call
  int64_t bytes_written = 0;
  int64_t num_transcoded = 0;
  int64_t num_resized = 0;
  std::map<std::string, int64_t> dropped;  ///< by kind: where, image, caption, duplicate, damaged
};

/// Writes the samples of an index with a picture and a caption as tars that every WebDataset reader takes:
/// out/tars/NNNNNN.tar, out/dropped.jsonl (every sample that was left out, with the reason) and, last,
/// out/build.json; docs/formats/tars.md. Every picture is decoded; one that cannot be is dropped. Memory is
/// that of a few samples a thread. An interrupted call is taken up after the last whole tar, with the same
/// bytes at the end. Throws InvalidInput if `out` holds another build, the options are out of range, or the
/// index holds captions by language or conversations, which these tars cannot keep.
TarReport build_tars(const index::Index& index, const std::filesystem::path& out, const TarOptions& options,
                     const Progress& progress);

/// The names that `where` may use.
[[nodiscard]] std::vector<std::string> where_columns();

}  // namespace chiliad::dataset
