#include "chiliad/report/stats_page.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "chiliad/base/error.h"
#include "chiliad/base/units.h"
#include "chiliad/dataset/remote_names.h"
#include "chiliad/loader/item_loader.h"
#include "chiliad/report/chart.h"
#include "chiliad/report/html.h"
#include "chiliad/report/notable.h"
#include "chiliad/report/sample_box.h"

namespace chiliad::report {
namespace {

using dataset::Bin;
using dataset::Stats;

constexpr size_t kMostBars = 20;
constexpr size_t kMostText = 200;

std::vector<Bar> bars_of(const std::vector<Bin>& bins) {
  std::vector<Bar> bars;
  for (const Bin& bin : bins) {
    const bool is_last = &bin == &bins.back();
    bars.push_back(
        {is_last ? fmt::format("{:.4g} and up", bin.low) : fmt::format("{:.4g} to {:.4g}", bin.low, bin.high),
         static_cast<double>(bin.count)});
  }
  // Empty ones between others say something, at the ends they do not.
  const auto is_empty = [](const Bar& bar) { return bar.value == 0.0; };
  while (!bars.empty() && is_empty(bars.back())) bars.pop_back();
  bars.erase(bars.begin(), std::find_if_not(bars.begin(), bars.end(), is_empty));
  return bars;
}

/// The most frequent first.
std::vector<Bar> bars_of(const std::map<std::string, int64_t>& counts) {
  std::vector<Bar> bars;
  for (const auto& [name, count] : counts)
    bars.push_back({name.empty() ? "unknown" : name, static_cast<double>(count)});
  std::stable_sort(bars.begin(), bars.end(), [](const Bar& a, const Bar& b) { return a.value > b.value; });
  if (bars.size() > kMostBars) bars.resize(kMostBars);
  return bars;
}

std::string numbers(const Stats& stats) {
  Table table({}, 1);
  const auto add = [&](const char* what, int64_t count) { table.add({what, fmt::format("{}", count)}); };
  add("samples", stats.num_samples);
  add("shards", stats.num_shards);
  table.add({"bytes", format_bytes(stats.payload_bytes)});
  table.add({"of these pictures", format_bytes(stats.image_bytes)});
  add("pictures that cannot be used", stats.num_bad_images);
  add("samples without caption", stats.num_no_caption);
  add("lines of bad.jsonl", stats.num_bad);
  if (stats.num_documents > 0) add("documents", stats.num_documents);
  if (stats.num_conversations > 0) add("conversations", stats.num_conversations);
  return table.to_html();
}

/// Boxes of samples, read as they are asked for; counts the formats that it saw.
class BoxMaker {
 public:
  BoxMaker(const index::Index& index, int32_t side) : index_(index), side_(side), items_(index, {}) {}

  [[nodiscard]] SampleBox box(const PictureRow& row, bool counts_format = false) {
    const index::ShardPtr shard = index_.shard(row.shard);
    SampleBox made;
    made.key = index_.key(row.sample);
    made.thumbnail = read_thumbnail(index_, *shard, shard->parts.at(row.part), side_);
    const char* format = format_name(made.thumbnail.format);
    if (counts_format) ++formats_[format];
    if (row.width > 0)
      made.facts.push_back(
          fmt::format("{} x {} pixels, {}, {}", row.width, row.height, format, format_bytes(row.bytes)));
    made.is_bad = !made.thumbnail.problem.empty();
    if (made.is_bad) made.facts.push_back(made.thumbnail.problem);
    made.text = caption(row.sample);
    return made;
  }
  [[nodiscard]] std::string boxes(const std::vector<PictureRow>& rows, bool counts_format = false) {
    std::vector<SampleBox> made;
    for (const PictureRow& row : rows) made.push_back(box(row, counts_format));
    return to_html(made);
  }
  /// One box a group, with the keys of its first samples.
  [[nodiscard]] std::string boxes(const std::vector<LikeSamples>& groups) {
    std::vector<SampleBox> made;
    for (const LikeSamples& group : groups) {
      made.push_back(first_of(group));
      SampleBox& first = made.back();
      first.facts.push_back(fmt::format("{} samples:", group.count));
      for (const int64_t sample : group.samples) first.facts.push_back(index_.key(sample));
      const int64_t more = group.count - static_cast<int64_t>(group.samples.size());
      if (more > 0) first.facts.push_back(fmt::format("and {} more", more));
    }
    return to_html(made);
  }
  [[nodiscard]] const std::map<std::string, int64_t>& formats() const { return formats_; }

 private:
  [[nodiscard]] SampleBox first_of(const LikeSamples& group) {
    const int64_t sample = group.samples.front();
    SampleBox made{index_.key(sample)};
    const auto part = index_.image_part(sample);
    if (part != nullptr) made.thumbnail = read_thumbnail(index_, *index_.shard_of(sample), *part, side_);
    return made;
  }
  [[nodiscard]] std::string caption(int64_t number) {
    const index::Sample sample = index_.sample(number);
    if (sample.num_captions == 0) return "";
    try {
      std::string text = items_.read_caption(number, sample.first_caption).text;
      if (text.size() > kMostText) {
        text.resize(kMostText);
        while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xC0U) == 0x80U) text.pop_back();
        if (!text.empty() && static_cast<unsigned char>(text.back()) >= 0xC0U) text.pop_back();
        text += " ...";
      }
      return text;
    } catch (const Error& error) {
      return fmt::format("caption: {}", error.what());
    }
  }

  const index::Index& index_;
  const int32_t side_;
  loader::ItemLoader items_;
  std::map<std::string, int64_t> formats_;
};

std::string charts(const Stats& stats, const std::map<std::string, int64_t>& formats) {
  const bool only_text = stats.image_bytes == 0 && stats.num_documents > 0;
  std::string html = "<div class=\"charts\">";
  if (!only_text) {
    html += bar_chart(bars_of(stats.sizes), "Pictures by size: sqrt(width * height), pixels");
    html += bar_chart(bars_of(stats.aspect_ratios), "Pictures by shape: width / height");
    html += bar_chart(bars_of(stats.images_by_flag), "Pictures by property");
    html += bar_chart(bars_of(formats), "Pictures by format, of those drawn below");
    html += bar_chart(bars_of(stats.captions_by_language), "Captions by language");
  }
  html += bar_chart(bars_of(stats.caption_lengths),
                    only_text ? "Documents by length, bytes" : "Captions by length, bytes");
  html += bar_chart(bars_of(stats.parts_by_media), "Parts by kind");
  return html + "</div>\n";
}

std::string shown_of(size_t shown, int64_t all) {
  return static_cast<int64_t>(shown) < all
             ? paragraph(fmt::format("The largest {} of {} groups.", shown, all))
             : "";
}

std::string notable_sections(const Notable& notable, BoxMaker& boxes) {
  std::string html;
  const auto add = [&](const char* heading, const auto& rows, const std::string& note = "") {
    if (!rows.empty()) html += section(heading, note + boxes.boxes(rows));
  };
  add("Pictures that cannot be used", notable.unusable);
  add("Smallest pictures", notable.smallest);
  add("Largest pictures", notable.largest);
  add("Widest pictures", notable.widest);
  add("Tallest pictures", notable.tallest);
  add("Keys that stand more than once", notable.same_keys,
      shown_of(notable.same_keys.size(), notable.num_same_keys));
  add("Pictures that stand more than once, byte by byte", notable.same_pictures,
      shown_of(notable.same_pictures.size(), notable.num_same_pictures));
  return html;
}

}  // namespace

std::string stats_page(const index::Index& index, const Stats& stats, const StatsPageOptions& options) {
  dataset::refuse_remote(index);
  const Notable notable = find_notable(index, options.max_drawn, options.max_notable);
  BoxMaker boxes(index, options.thumb_side);
  const std::string drawn = boxes.boxes(notable.drawn, true);
  std::string body = fmt::format("<h1>{}: data</h1>\n", foreign_text(options.title));
  body += paragraph(fmt::format("Made at {} by chiliad data stats. Identity {}", options.made_at,
                                index.manifest().digest.hex()));
  body += section("Numbers", numbers(stats));
  body += section("Histograms", charts(stats, boxes.formats()));
  if (!notable.drawn.empty())
    body += section(
        "Some pictures",
        paragraph(fmt::format("{} of them, drawn by a hash of their keys.", notable.drawn.size())) + drawn);
  body += notable_sections(notable, boxes);
  return whole_page(fmt::format("{}: data", options.title), body);
}

}  // namespace chiliad::report
