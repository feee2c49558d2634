#pragma once

#include <cstdint>

#include "chiliad/dataset/build_index.h"
#include "chiliad/image/vision_view.h"
#include "chiliad/text/conversation_encoder.h"

namespace chiliad::dataset {

/// Makes the columns of encoder.keys() of every shard that lacks one, by the sizes of pictures that the index
/// has: no picture is read. A conversation counts 0 where one of its pictures cannot be used, and where
/// nothing of an answer is left before the cut. Returns how many shards were counted. Throws InvalidInput for
/// an index of anything else; as build_token_columns.
int64_t build_conversation_columns(const index::Index& index, const text::ConversationEncoder& encoder,
                                   const image::VisionView& view, const Progress& progress,
                                   index::PartSource* source = nullptr);

}  // namespace chiliad::dataset
