#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "chiliad/base/hash.h"

namespace chiliad::stepplan {

/// A shape class of pictures, in pixels.
struct Bucket {
  int32_t width = 0;
  int32_t height = 0;
  auto operator<=>(const Bucket&) const = default;
};

/// Predicted seconds of forward + backward by component of the model: a vision encoder, a backbone.
/// Components that a model lacks stay 0.
inline constexpr int kMaxComponents = 4;
using Works = std::array<double, kMaxComponents>;

/// One item of a step: which sample, in which shape, with which draws. Content only: nothing of ranks.
struct Item {
  int64_t sample = 0;     ///< number in the index
  uint32_t position = 0;  ///< in the step; the order of `select`, the same for every layout
  int32_t bucket = 0;     ///< in Plan::buckets()
  int32_t caption = -1;   ///< in the shard's captions; -1: none
  /// Of that caption (1 where there is none: the null caption). Mode pack: positions of the document, each of
  /// which has a target.
  uint32_t num_tokens = 0;
  uint32_t image_tokens = 0;  ///< of num_tokens: positions of its pictures, in spans that stay whole
  uint32_t num_tiles = 0;     ///< pictures that the vision encoder sees for it
  int32_t pack = -1;          ///< offline pack in the step: its items share a row; -1: none
  float crop_x = 0.5F;
  float crop_y = 0.5F;
  bool flip = false;
  float weight = 1.0F;    ///< 0: agreed to be bad (journal)
  uint64_t draw_key = 0;  ///< keys the item's random draws (time, noise, dropout): Rng({draw_key, purpose})
};

/// The items of one optimizer step.
struct Step {
  int64_t step = 0;
  int64_t epoch = 0;
  int64_t window = 0;
  std::vector<Item> items;
  /// Over every content field of every item, in order: equal for every layout.
  [[nodiscard]] Digest digest() const;
};

/// One shape (mode bucket), or one row of whole documents or of pictures of any shapes (mode pack), run
/// through the model together by one rank.
struct MicroBatch {
  int32_t bucket = 0;       ///< 0 in mode pack
  std::vector<Item> items;  ///< empty: a slot without work
  double work = 0.0;        ///< predicted seconds of forward + backward
  Works works{};            ///< the same by component
  /// Of all items' captions; of documents the length of the row.
  [[nodiscard]] int64_t num_tokens() const;
};

/// What each data-parallel rank does in a step: the same number of slots everywhere.
struct PackedStep {
  std::vector<std::vector<MicroBatch>> slots;  ///< [rank][slot]
  int64_t num_items = 0;                       ///< planned global count, the divisor of the loss
  int64_t num_tokens = 0;                      ///< of the items of weight > 0: the divisor of documents
  std::vector<double> rank_work;
  /// max / mean of rank_work: how long the slowest keeps the others waiting.
  [[nodiscard]] double imbalance() const;
};

}  // namespace chiliad::stepplan
