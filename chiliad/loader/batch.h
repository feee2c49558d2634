#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "chiliad/base/host_array.h"
#include "chiliad/stepplan/bad_rates.h"
#include "chiliad/stepplan/item.h"

namespace chiliad::loader {

/// A deterministic finding about an item: it cannot be used, whoever tries.
struct Verdict {
  int64_t sample = 0;
  std::string reason;
};

/// Target of a position that is not supervised.
inline constexpr int32_t kNoTarget = -100;

/// A picture of a conversation: the positions and the tiles that it has, counted from the first of its item.
struct PictureSpan {
  int64_t first = 0;
  int64_t count = 0;
  int64_t first_tile = 0;
  int64_t num_tiles = 0;
};

/// One micro-batch, ready for the device.
/// Mode bucket: B pictures of one shape with their captions.
/// Of models on latents: latents in place of pixels, encoded captions in place of tokens, or class numbers.
/// Mode pack of documents: D of them one after another in a row of T positions, no padding; attention,
/// positions and targets do not cross documents. `bucket` and `pixels` are empty. Of conversations, tokens at
/// the positions of pictures are text::kImagePosition, and only answers have targets. Mode pack of models on
/// latents: B pictures of any shapes, those of one shape together, their values and their captions' one after
/// another, no padding. `bucket` is empty.
struct Batch {
  stepplan::Bucket bucket;
  /// [B] or [D]. A bad item keeps its place: zero pixels and tokens, no targets, weight 0. The weights are
  /// those of the documents' losses.
  std::vector<stepplan::Item> items;
  HostArray pixels;   ///< bucket: uint8 [B, H, W, 3]
  HostArray latents;  ///< fp32 or bf16 [B, C, h, w]; [B, 2, C, h, w], mean and logvar, where they are drawn;
                      ///< pack: [values]
  HostArray text;     ///< fp32 or bf16 [B, longest caption, D], padded with 0; pack: [tokens, D]
  HostArray pooled;   ///< the same [B, P], where the text encoder gives it
  HostArray
      tokens;  ///< bucket: int32 [B, longest caption], padded with 0, or [B, 1], classes; pack: int32 [T]
  std::vector<int32_t> token_counts;  ///< [B] or [D]
  HostArray targets;                  ///< pack: int32 [T], the token that follows, or kNoTarget
  std::vector<int32_t> cu_seqlens;    ///< pack: [D + 1]: where documents begin, and T; {0} in an empty slot
  /// Conversations: uint8 [N, side, side, 3], the tiles of all items' pictures one after another.
  HostArray tiles;
  std::vector<int64_t> cu_tiles;  ///< conversations: [D + 1]: where an item's tiles begin, and their end
  /// Conversations: of each item its pictures in order; none of a bad item.
  std::vector<std::vector<PictureSpan>> pictures;
  std::vector<stepplan::Bucket> shapes;  ///< pack of pictures: [B]
  std::vector<int64_t>
      cu_latents;                 ///< pack of pictures: [B + 1]: where an item's values begin, and their end
  std::vector<int64_t> cu_text;   ///< the same of its caption's tokens, of as many as planned
  std::vector<uint64_t> content;  ///< digest of each item's data as it was loaded: the same for every layout
  /// Where the arrays lie, shared by the loader, which uses it again once the batch is gone.
  std::shared_ptr<std::byte> memory;
  [[nodiscard]] bool is_row() const { return !cu_seqlens.empty(); }
  [[nodiscard]] bool packs_pictures() const { return !cu_latents.empty(); }
  [[nodiscard]] stepplan::Bucket shape_of(size_t i) const { return shapes.empty() ? bucket : shapes[i]; }
};

/// What one rank consumes in one step, handed over in plan order.
struct RankStep {
  int64_t step = 0;
  int64_t epoch = 0;
  int64_t num_items = 0;  ///< planned global count (items of weight > 0 in the plan)
  int64_t num_tokens =
      0;          ///< planned global count of their tokens: in mode pack the targets, the loss's divisor
  Digest digest;  ///< of the step's items
  /// Of the whole step, by group of samples; those of weight > 0.
  std::vector<stepplan::GroupCount> seen;
  /// Sum over this rank's items of their data's digests, each with its sample and position: equal for ranks
  /// that load the same, and added up over ranks for every layout.
  uint64_t consumed = 0;
  std::vector<Batch> slots;
  std::vector<Verdict> verdicts;  ///< found by this rank while loading this step
  double predicted_work = 0.0;
};

}  // namespace chiliad::loader
