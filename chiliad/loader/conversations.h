#pragma once

#include <memory>
#include <vector>

#include "chiliad/image/vision_view.h"
#include "chiliad/index/index.h"
#include "chiliad/spec/run_file.h"
#include "chiliad/spec/work.h"
#include "chiliad/stepplan/pack.h"
#include "chiliad/text/conversation_encoder.h"

namespace chiliad::loader {

/// How conversations become items: their sequences, and what a vision encoder sees of their pictures.
struct Conversations {
  std::shared_ptr<const text::ConversationEncoder> encoder;  ///< shared with whoever counts and shows tokens
  image::VisionView view;
};

/// What section `vision` says; null where items are documents. Throws as text::ConversationEncoder::open.
[[nodiscard]] std::shared_ptr<const Conversations> open_conversations(const spec::RunFile& run);

/// The parts of a sample that `load` reads beside the caption: of a conversation all its pictures in order,
/// also those that it names twice; else the one that index::Index::image_part gives, or none.
[[nodiscard]] std::vector<const index::Part*> picture_parts(const index::Shard& shard,
                                                            const index::Sample& sample);

/// Sets how a step of conversations is cut: work of tiles, and of the row, as components `vision` and
/// `backbone`. `options` has the row's work.
void add_vision_work(const spec::VisionOptions& vision, const spec::Rates& rates,
                     stepplan::PackOptions& options);

}  // namespace chiliad::loader
