#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "chiliad/base/json_text.h"
#include "chiliad/base/units.h"
#include "chiliad/dataset/stats.h"

namespace chiliad::dataset {
namespace {

using Json = nlohmann::ordered_json;

Json bins_json(const std::vector<Bin>& bins) {
  Json array = Json::array();
  for (const Bin& bin : bins) array.push_back({{"low", bin.low}, {"high", bin.high}, {"count", bin.count}});
  return array;
}

constexpr size_t kBarWidth = 40;

void add_bars(std::string& text, const std::string& title, const std::vector<Bin>& bins) {
  int64_t most = 1;
  for (const Bin& bin : bins) most = std::max(most, bin.count);
  text += title + "\n";
  for (const Bin& bin : bins) {
    if (bin.count == 0) continue;
    const auto width =
        static_cast<size_t>(static_cast<double>(bin.count) / static_cast<double>(most) * kBarWidth);
    const bool open = &bin == &bins.back();
    const std::string range =
        open ? fmt::format("{:.4g} and up", bin.low) : fmt::format("{:.4g} to {:.4g}", bin.low, bin.high);
    text +=
        fmt::format("  {:<16} {:>10}  {}\n", range, bin.count, std::string(std::max<size_t>(width, 1), '#'));
  }
}

/// The most frequent first.
void add_counts(std::string& text, const std::string& title, const std::map<std::string, int64_t>& counts) {
  constexpr size_t kShown = 12;
  std::vector<std::pair<std::string, int64_t>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  text += title + "\n";
  for (size_t i = 0; i < std::min(kShown, sorted.size()); ++i) {
    text += fmt::format("  {:<16} {:>10}\n", sorted[i].first.empty() ? "unknown" : sorted[i].first,
                        sorted[i].second);
  }
  if (sorted.size() > kShown) text += fmt::format("  and {} more\n", sorted.size() - kShown);
}

void add_pictures(std::string& text, const Stats& stats) {
  text +=
      fmt::format("{} reported in bad.jsonl: {} pictures that cannot be used, {} samples without caption\n",
                  stats.num_bad, stats.num_bad_images, stats.num_no_caption);
  add_bars(text, "width / height", stats.aspect_ratios);
  add_bars(text, "sqrt(width * height), pixels", stats.sizes);
  add_counts(text, "captions by language", stats.captions_by_language);
  add_counts(text, "pictures by property", stats.images_by_flag);
}

void add_conversations(std::string& text, const Stats& stats) {
  text += fmt::format("{} conversations\n", stats.num_conversations);
  std::map<std::string, int64_t> counts;
  for (const auto& [pictures, samples] : stats.samples_by_pictures)
    counts[pictures == 1 ? "1 picture" : fmt::format("{} pictures", pictures)] = samples;
  add_counts(text, "samples by number of pictures", counts);
}

}  // namespace

std::string to_json(const Stats& stats) {
  Json percentiles = Json::object();
  for (size_t i = 0; i < Stats::kPercentiles.size(); ++i) {
    percentiles[fmt::format("p{}", Stats::kPercentiles[i])] = stats.caption_bytes[i];
  }
  Json pictures = Json::object();
  for (const auto& [count, samples] : stats.samples_by_pictures) pictures[std::to_string(count)] = samples;
  const Json json{{"num_samples", stats.num_samples},
                  {"num_bad", stats.num_bad},
                  {"num_bad_images", stats.num_bad_images},
                  {"num_no_caption", stats.num_no_caption},
                  {"num_documents", stats.num_documents},
                  {"num_conversations", stats.num_conversations},
                  {"num_shards", stats.num_shards},
                  {"num_blocks", stats.num_blocks},
                  {"payload_bytes", stats.payload_bytes},
                  {"image_bytes", stats.image_bytes},
                  {"text_bytes", stats.text_bytes},
                  {"captions_by_language", stats.captions_by_language},
                  {"images_by_flag", stats.images_by_flag},
                  {"parts_by_media", stats.parts_by_media},
                  {"samples_by_pictures", pictures},
                  {"tokens_by_tokenizer", stats.tokens_by_tokenizer},
                  {"aspect_ratios", bins_json(stats.aspect_ratios)},
                  {"sizes", bins_json(stats.sizes)},
                  {"caption_lengths", bins_json(stats.caption_lengths)},
                  {"caption_bytes", percentiles}};
  return json_text(json, 1);
}

std::string to_table(const Stats& stats) {
  std::string text =
      fmt::format("{} samples in {} shards and {} blocks, {} ({} pictures, {} text)\n", stats.num_samples,
                  stats.num_shards, stats.num_blocks, format_bytes(stats.payload_bytes),
                  format_bytes(stats.image_bytes), format_bytes(stats.text_bytes));
  const bool only_text = stats.image_bytes == 0 && stats.num_documents > 0;
  if (only_text) {
    text += fmt::format("{} documents; {} reported in bad.jsonl, {} of them empty\n", stats.num_documents,
                        stats.num_bad, stats.num_no_caption);
  } else {
    add_pictures(text, stats);
  }
  if (stats.num_conversations > 0) add_conversations(text, stats);
  add_counts(text, "parts", stats.parts_by_media);
  text += fmt::format("{} length, bytes\n ", only_text ? "document" : "caption");
  for (size_t i = 0; i < Stats::kPercentiles.size(); ++i) {
    text += fmt::format(" {}%: {} ", Stats::kPercentiles[i], stats.caption_bytes[i]);
  }
  text += "\n";
  if (!stats.tokens_by_tokenizer.empty())
    add_counts(text, "tokens, by the tokenizer's digest", stats.tokens_by_tokenizer);
  return text;
}

}  // namespace chiliad::dataset
