#include "chiliad/loader/conversations.h"

#include <algorithm>

namespace chiliad::loader {
namespace {

/// Forward alone: the encoder is frozen. The usual block: attention of four square products, an MLP of four
/// times the width.
spec::Work tile_work(const spec::VisionOptions& vision) {
  const auto width = static_cast<double>(vision.width);
  const auto depth = static_cast<double>(vision.depth);
  const double lines = static_cast<double>(vision.side / vision.patch);
  const double patches = lines * lines;
  spec::Work work;
  work.linear_flops = depth * 24.0 * patches * width * width;
  work.attention_flops = depth * 4.0 * patches * patches * width;
  return work;
}

}  // namespace

std::shared_ptr<const Conversations> open_conversations(const spec::RunFile& run) {
  const spec::VisionOptions& vision = run.vision;
  if (!spec::reads_conversations(vision)) return nullptr;
  auto made = std::make_shared<Conversations>();
  made->view = {static_cast<int32_t>(vision.side), static_cast<int32_t>(vision.patch),
                image::vision_fit(vision.fit)};
  made->encoder = text::ConversationEncoder::open({.tokenizer = run.data.tokenizer,
                                                   .chat_template = vision.chat_template,
                                                   .max_ids = run.data.sequence_length + 1,
                                                   .pictures = made->view.digest()});
  return made;
}

std::vector<const index::Part*> picture_parts(const index::Shard& shard, const index::Sample& sample) {
  std::vector<const index::Part*> pictures;
  bool is_conversation = false;
  for (uint32_t p = sample.first_part; p < sample.first_part + sample.num_parts; ++p) {
    const index::Part& part = shard.parts.at(p);
    if (part.media == index::MediaType::kImage) pictures.push_back(&part);
    is_conversation = is_conversation || part.media == index::MediaType::kConversation;
  }
  if (!is_conversation && pictures.size() > 1) pictures.resize(1);
  return pictures;
}

void add_vision_work(const spec::VisionOptions& vision, const spec::Rates& rates,
                     stepplan::PackOptions& options) {
  const double tile = rates.seconds(tile_work(vision));
  const stepplan::RowWork row = options.row_work;
  const double overhead = std::max(0.0, 2.0 * row(1, 0.0) - row(2, 0.0));  // work of a row is linear in these
  options.components = {"vision", "backbone"};
  options.row_overhead = {0.0, overhead};
  options.item_works = [tile, row, overhead](const stepplan::Item& item) {
    const double tokens = static_cast<double>(item.num_tokens);
    return stepplan::Works{tile * item.num_tiles, row(item.num_tokens, tokens * tokens) - overhead};
  };
}

}  // namespace chiliad::loader
