#include "chiliad/report/step_page.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "chiliad/base/host_array.h"
#include "chiliad/image/encode.h"
#include "chiliad/index/columns.h"
#include "chiliad/report/html.h"
#include "chiliad/spec/caption_dropout.h"

namespace chiliad::report {
namespace {

using loader::Batch;
using loader::RankStep;

std::string language_text(const index::Index& index, const stepplan::Item& item) {
  if (item.caption < 0) return "no caption";
  const auto shard = index.shard_of(item.sample);
  const auto name = index::language_name(shard->captions.at(static_cast<size_t>(item.caption)).language);
  return name.empty() ? "language not known" : name;
}

/// Why an item of weight 0 has that, as far as this rank found out itself.
std::string verdict_text(const RankStep& step, int64_t sample) {
  for (const auto& verdict : step.verdicts) {
    if (verdict.sample == sample) return verdict.reason;
  }
  return "left out by the journal";
}

std::string facts_line(std::string_view text) {
  return "<p class=\"soft\">" + escape(text) + "</p>\n";
}

/// Draws one step's items; counts what it has shown.
class StepDrawer {
 public:
  StepDrawer(const index::Index& index, const StepPageOptions& options) : index_(index), options_(options) {}

  [[nodiscard]] std::string draw(const RankStep& step, const Batch& batch) {
    std::string html;
    for (size_t i = 0; i < batch.items.size(); ++i) {
      if (num_shown_ == options_.max_items) {
        ++num_left_out_;
        continue;
      }
      ++num_shown_;
      html += batch.is_row() ? document(step, batch, i) : picture_item(step, batch, i);
    }
    return batch.is_row() ? html : "<div class=\"items\">" + html + "</div>\n";
  }
  [[nodiscard]] int64_t num_left_out() const { return num_left_out_; }

 private:
  /// Key, and what holds for items of both modes.
  [[nodiscard]] std::string item_head(const RankStep& step, const stepplan::Item& item) const {
    std::string html = "<strong>" + foreign_text(index_.key(item.sample)) + "</strong>\n";
    html += facts_line(fmt::format("position {}, weight {:g}", item.position, item.weight));
    if (item.weight == 0.0F) html += paragraph("Not used: " + verdict_text(step, item.sample));
    return html;
  }

  [[nodiscard]] std::string picture_item(const RankStep& step, const Batch& batch, size_t i) const {
    const auto& item = batch.items[i];
    const auto count = static_cast<size_t>(batch.token_counts[i]);
    const Original shown = shown_of(batch, i);
    std::string html = fmt::format("<div class=\"item{}\">", item.weight == 0.0F ? " bad" : "");
    html += picture(image::encode_png(shown.pixels), index_.key(item.sample)) + item_head(step, item);
    html += facts_line(
        fmt::format("crop {:.2f}, {:.2f}{}", item.crop_x, item.crop_y, item.flip ? ", mirrored" : ""));
    html += facts_line(fmt::format("{} tokens, {}", count, language_text(index_, item)));
    if (spec::drops_caption(options_.caption_dropout, item.draw_key))
      html += facts_line("caption dropped in this step: the model sees the null caption");
    return html + "<p>" + foreign_text(shown.caption) + "</p></div>\n";
  }

  [[nodiscard]] Original shown_of(const Batch& batch, size_t i) const {
    const auto& item = batch.items[i];
    if (batch.pixels.count() == 0) return options_.original(item, batch.shape_of(i));
    const auto bytes = batch.pixels.bytes().size() / batch.items.size();
    auto* first = const_cast<std::byte*>(batch.pixels.data()) + i * bytes;
    const Shape shape{batch.bucket.height, batch.bucket.width, 3};
    const auto width = batch.tokens.as<int32_t>().size() / batch.items.size();
    const auto count = static_cast<size_t>(batch.token_counts[i]);
    return {HostArray::view(DType::kU8, shape, first),
            options_.decode(batch.tokens.as<int32_t>().subspan(i * width, count))};
  }

  [[nodiscard]] std::string document(const RankStep& step, const Batch& batch, size_t i) const {
    const auto begin = static_cast<size_t>(batch.cu_seqlens[i]);
    const auto end = static_cast<size_t>(batch.cu_seqlens[i + 1]);
    const auto tokens = batch.tokens.as<int32_t>().subspan(begin, end - begin);
    const auto targets = batch.targets.as<int32_t>().subspan(begin, end - begin);
    std::string html = item_head(step, batch.items[i]);
    html += facts_line(
        fmt::format("positions {} to {} of the row, {}", begin, end, language_text(index_, batch.items[i])));
    html += "<p class=\"tokens\">";
    if (batch.pictures.empty()) return html + tokens_html(tokens, targets) + "</p>\n";
    size_t from = 0;
    for (size_t p = 0; p < batch.pictures[i].size(); ++p) {
      const loader::PictureSpan& span = batch.pictures[i][p];
      const auto first = static_cast<size_t>(span.first);
      html += tokens_html(tokens.subspan(from, first - from), targets.subspan(from, first - from));
      html += "</p>\n" + facts_line(fmt::format("picture {}: {} positions, {} tiles", p + 1, span.count,
                                                span.num_tiles));
      html += tiles_html(batch, i, span) + "<p class=\"tokens\">";
      from = first + static_cast<size_t>(span.count);
    }
    return html + tokens_html(tokens.subspan(from), targets.subspan(from)) + "</p>\n";
  }

  [[nodiscard]] std::string tokens_html(std::span<const int32_t> tokens,
                                        std::span<const int32_t> targets) const {
    std::string html;
    // A run of tokens at a time: one token may be part of a character.
    for (size_t from = 0; from < tokens.size();) {
      const bool supervised = targets[from] != loader::kNoTarget;
      size_t to = from;
      while (to < tokens.size() && (targets[to] != loader::kNoTarget) == supervised) ++to;
      html += fmt::format("<span class=\"{}\">{}</span>", supervised ? "yes" : "no",
                          foreign_text(options_.decode(tokens.subspan(from, to - from))));
      from = to;
    }
    return html;
  }

  /// Side by side, as the vision encoder sees them.
  [[nodiscard]] std::string tiles_html(const Batch& batch, size_t i, const loader::PictureSpan& span) const {
    const int64_t side = batch.tiles.shape()[1];
    const int64_t bytes = side * side * 3;
    std::string html;
    for (int64_t t = 0; t < span.num_tiles; ++t) {
      auto* first =
          const_cast<std::byte*>(batch.tiles.data()) + (batch.cu_tiles[i] + span.first_tile + t) * bytes;
      html += picture(image::encode_png(HostArray::view(DType::kU8, Shape{side, side, 3}, first)),
                      index_.key(batch.items[i].sample));
    }
    return "<div class=\"items\">" + html + "</div>\n";
  }

  const index::Index& index_;
  const StepPageOptions& options_;
  int64_t num_shown_ = 0;
  int64_t num_left_out_ = 0;
};

std::string batch_heading(const Batch& batch, size_t slot) {
  if (batch.items.empty()) return fmt::format("Slot {}: empty", slot);
  if (batch.is_row())
    return fmt::format("Slot {}: a row of {} documents, {} tokens", slot, batch.items.size(),
                       batch.cu_seqlens.back());
  if (batch.packs_pictures())
    return fmt::format("Slot {}: a pack of {} pictures of {} shapes", slot, batch.items.size(),
                       std::set<stepplan::Bucket>(batch.shapes.begin(), batch.shapes.end()).size());
  return fmt::format("Slot {}: {} pictures of {}x{}", slot, batch.items.size(), batch.bucket.width,
                     batch.bucket.height);
}

std::string head(const std::vector<RankStep>& ranks, const StepPageOptions& options) {
  const RankStep& first = ranks.front();
  Table table({}, 99);
  table.add({"Step", fmt::format("{} of the plan (counted from 0), epoch {}", first.step, first.epoch)});
  table.add({"Items", fmt::format("{} of weight > 0, {} tokens", first.num_items, first.num_tokens)});
  table.add({"Digest", first.digest.hex()});
  double most = 0.0;
  double sum = 0.0;
  for (const auto& rank : ranks) {
    most = std::max(most, rank.predicted_work);
    sum += rank.predicted_work;
  }
  if (sum > 0.0)
    table.add({"Imbalance", fmt::format("{:.3f} (most over mean of the ranks' predicted work)",
                                        most * static_cast<double>(ranks.size()) / sum)});
  return "<h1>" + foreign_text(options.title) + "</h1>\n" +
         facts_line("Made at " + options.made_at + " by chiliad data show") + table.to_html();
}

}  // namespace

std::string step_page(const index::Index& index, const std::vector<RankStep>& ranks,
                      const StepPageOptions& options) {
  std::string body = head(ranks, options);
  StepDrawer drawer(index, options);
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    std::string inside;
    for (size_t slot = 0; slot < ranks[rank].slots.size(); ++slot) {
      const Batch& batch = ranks[rank].slots[slot];
      inside += "<h3>" + escape(batch_heading(batch, slot)) + "</h3>\n" + drawer.draw(ranks[rank], batch);
    }
    body +=
        section(fmt::format("Rank {}: {:.3g} s of predicted work", rank, ranks[rank].predicted_work), inside);
  }
  if (drawer.num_left_out() > 0)
    body += paragraph(fmt::format("{} more items are not shown (--max-items).", drawer.num_left_out()));
  return whole_page(fmt::format("{}: step {}", options.title, ranks.front().step), body);
}

}  // namespace chiliad::report
