#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "chiliad/index/index.h"

namespace chiliad::dataset {

/// One bar of a histogram: values v with low <= v < high.
struct Bin {
  double low = 0.0;
  double high = 0.0;
  int64_t count = 0;
};

/// What an index and its token columns say of the data set; no payload is read.
struct Stats {
  int64_t num_samples = 0;
  int64_t num_bad = 0;         ///< lines of bad.jsonl
  int64_t num_bad_images = 0;  ///< samples with kBadImage
  int64_t num_no_caption = 0;  ///< samples with kNoCaption
  int64_t num_documents = 0;   ///< samples of text alone
  int64_t num_conversations = 0;
  int64_t num_shards = 0;
  int64_t num_blocks = 0;
  int64_t payload_bytes = 0;
  int64_t image_bytes = 0;
  int64_t text_bytes = 0;
  std::map<std::string, int64_t> captions_by_language;  ///< "" is unknown
  std::map<std::string, int64_t> images_by_flag;  ///< "alpha", "palette", ...; a picture may count in several
  std::map<std::string, int64_t> parts_by_media;
  std::map<int64_t, int64_t> samples_by_pictures;  ///< number of pictures -> samples
  /// All captions' tokens, uncut for documents, by the digest of the tokenizer; of those that every shard has
  /// a token column of.
  std::map<std::string, int64_t> tokens_by_tokenizer;
  std::vector<Bin> aspect_ratios;    ///< width / height of sound pictures, as steps of a factor
  std::vector<Bin> sizes;            ///< sqrt(width * height) in pixels, powers of two
  std::vector<Bin> caption_lengths;  ///< bytes, powers of two
  /// Caption bytes at 0, 25, 50, 75, 95, 99 and 100 %: the smallest length that so many captions do not
  /// exceed.
  std::array<int64_t, 7> caption_bytes{};

  static constexpr std::array<int, 7> kPercentiles{0, 25, 50, 75, 95, 99, 100};
};

[[nodiscard]] Stats compute_stats(const index::Index& index);
/// One JSON object with the fields above.
[[nodiscard]] std::string to_json(const Stats& stats);
/// Lines for a terminal, with bars.
[[nodiscard]] std::string to_table(const Stats& stats);

}  // namespace chiliad::dataset
