#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "chiliad/features/column.h"
#include "chiliad/image/jitter.h"
#include "chiliad/image/srgb.h"
#include "chiliad/index/index.h"
#include "chiliad/loader/batch.h"
#include "chiliad/loader/conversations.h"
#include "chiliad/loader/decoded_cache.h"
#include "chiliad/loader/item_watch.h"
#include "chiliad/loader/part_reader.h"
#include "chiliad/stepplan/item.h"
#include "chiliad/text/byte_tokenizer.h"
#include "chiliad/text/document_encoder.h"

namespace chiliad::loader {

/// Where an item's finished data goes.
struct ItemPlace {
  std::span<std::byte> pixels;  ///< uint8 [H, W, 3] of the bucket
  std::span<int32_t> tokens;    ///< [T]; T at least the item's num_tokens, in mode pack just that
  int32_t* token_count = nullptr;
  std::span<int32_t> targets{};  ///< mode pack: [T]
  // With features, those that the batch has:
  std::span<std::byte> latents{};
  std::span<std::byte> text{};  ///< of the longest caption
  std::span<std::byte> pooled{};
  // Of a conversation:
  std::span<std::byte> tiles{};                  ///< uint8 [num_tiles, side, side, 3]
  std::vector<PictureSpan>* pictures = nullptr;  ///< set by load
};

/// Columns that take the place of payload; null: the payload itself is read.
struct FeatureColumns {
  std::shared_ptr<const features::Column> latents{};
  std::shared_ptr<const features::Column> text{};
};

/// How pictures become pixels.
struct PictureOptions {
  std::array<uint8_t, 3> background{255, 255, 255};
  bool to_srgb = false;  ///< colours of other ICC profiles are converted
  double dct_margin = 0.0;
  image::Jitter jitter{};
};

struct ItemLoaderOptions {
  int64_t cache_bytes = 0;
  int64_t max_tokens = 128;
  PictureOptions pictures{};
  /// Mode pack: shared with the loader's owner, as long as the loader lives; null in mode bucket.
  std::shared_ptr<const text::DocumentEncoder> documents{};
  int64_t sequence_length = 0;  ///< mode pack
  FeatureColumns columns{};
  int64_t classes = 0;  ///< captions are numbers below it; 0: captions are text
  /// Shared as of PartReader; null: files.
  std::shared_ptr<index::PartSource> source{};
  /// Documents are conversations; shared as `documents`, which is then null.
  std::shared_ptr<const Conversations> conversations{};
};

/// Fills the place of an item without data: zero pixels, the null caption; a document without targets.
void clear_item(const ItemPlace& place);

/// "FILE bytes A to B" of a sample's picture or, where it has none, of the caption.
[[nodiscard]] std::string part_place(const index::Index& index, int64_t sample, int32_t caption);

/// Reads, verifies, decodes, covers and tokenizes one item. Thread-safe.
class ItemLoader {
 public:
  /// `index` outlives the loader.
  ItemLoader(const index::Index& index, const ItemLoaderOptions& options);

  /// Returns why the item is bad (its place is cleared then), or nothing. An item of weight 0 is not read.
  /// Throws Unavailable; CorruptData where the index contradicts verified bytes. watch: told of the phases;
  /// null: nobody.
  [[nodiscard]] std::string load(const stepplan::Item& item, stepplan::Bucket bucket, const ItemPlace& place,
                                 ItemWatch* watch = nullptr);

  /// `load` of the picture alone, uint8 [H, W, 3] of the bucket, without its caption.
  [[nodiscard]] std::string load_alone(const stepplan::Item& item, stepplan::Bucket bucket,
                                       std::span<std::byte> pixels);

  /// The text of an item's caption, or why there is none.
  struct CaptionText {
    std::string text;
    std::string refusal;
  };
  /// caption: its number in the sample's shard. Throws as load.
  [[nodiscard]] CaptionText read_caption(int64_t sample, uint32_t caption);

  /// Predicted seconds to decode it; 0 for what is not a picture.
  [[nodiscard]] double cost_seconds(const stepplan::Item& item) const;
  /// Bytes of the parts that `load` reads at most for this item.
  [[nodiscard]] int64_t payload_bytes(const stepplan::Item& item) const;
  [[nodiscard]] int64_t bytes_read() const { return reader_.bytes_read() + features_read_.load(); }
  [[nodiscard]] int64_t cache_hits() const { return cache_hits_.load(); }
  /// With to_srgb: decodes so far whose ICC profile could not be applied.
  [[nodiscard]] int64_t profiles_left() const { return profiles_left_.load(); }

 private:
  [[nodiscard]] int64_t feature_bytes(const stepplan::Item& item) const;
  /// Caption, encoded caption or class.
  [[nodiscard]] std::string load_words(const stepplan::Item& item, const ItemPlace& place);
  [[nodiscard]] std::string load_latents(const stepplan::Item& item, const ItemPlace& place);
  [[nodiscard]] std::string load_text(const stepplan::Item& item, const ItemPlace& place);
  [[nodiscard]] std::string load_class(const stepplan::Item& item, const ItemPlace& place);
  [[nodiscard]] std::string load_caption(const stepplan::Item& item, const ItemPlace& place);
  [[nodiscard]] std::string load_document(const stepplan::Item& item, const ItemPlace& place);
  [[nodiscard]] std::string load_conversation(const stepplan::Item& item, const ItemPlace& place,
                                              ItemWatch* watch);
  [[nodiscard]] std::string load_tiles(const index::Shard& shard,
                                       const std::vector<const index::Part*>& parts, const ItemPlace& place,
                                       ItemWatch* watch);
  void check_count(const stepplan::Item& item, size_t found) const;
  [[nodiscard]] std::string load_picture(const stepplan::Item& item, stepplan::Bucket bucket,
                                         std::span<std::byte> pixels, ItemWatch* watch);
  [[nodiscard]] std::string decode_picture(const stepplan::Item& item, stepplan::Bucket bucket,
                                           std::span<std::byte> pixels, ItemWatch* watch);
  /// The first ones go to the log.
  void note_profile(const stepplan::Item& item, const std::string& why);

  const index::Index& index_;
  ItemLoaderOptions options_;
  text::ByteTokenizer tokenizer_;
  PartReader reader_;
  DecodedCache cache_;
  std::atomic<int64_t> cache_hits_{0};
  std::atomic<int64_t> features_read_{0};
  image::SrgbConverter to_srgb_;
  std::atomic<int64_t> profiles_left_{0};
};

}  // namespace chiliad::loader
