#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "chiliad/loader/batch.h"
#include "chiliad/loader/item_loader.h"
#include "chiliad/loader/loader_options.h"

namespace chiliad::loader {

/// Bytes of the arrays of a micro-batch, each on a cache line of its own.
[[nodiscard]] int64_t slot_bytes(const stepplan::MicroBatch& slot,
                                 const std::vector<stepplan::Bucket>& buckets, const LoaderOptions& options);

/// The batch with arrays of undefined values in `memory`, which has slot_bytes.
[[nodiscard]] Batch make_slot(stepplan::MicroBatch&& slot, const std::vector<stepplan::Bucket>& buckets,
                              const LoaderOptions& options, std::shared_ptr<std::byte> memory);

/// Where item `i` of a batch goes. The items' places cover the arrays.
[[nodiscard]] ItemPlace place_of(Batch& batch, size_t i);

/// A place of its own for an item of a batch, as large as the one there.
class ItemCopy {
 public:
  ItemCopy(const Batch& batch, size_t i);
  [[nodiscard]] const ItemPlace& place() const { return place_; }

 private:
  std::vector<std::vector<std::byte>> bytes_;
  std::vector<std::vector<int32_t>> words_;
  int32_t token_count_ = 0;
  std::vector<PictureSpan> pictures_;
  ItemPlace place_;
};

/// Digest of what lies in an item's place, without what pads it to others' lengths.
[[nodiscard]] uint64_t content_digest(const ItemPlace& place);
/// RankStep::consumed, from the items' content digests.
[[nodiscard]] uint64_t consumed_digest(const RankStep& step);

}  // namespace chiliad::loader
