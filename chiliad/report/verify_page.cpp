#include "chiliad/report/verify_page.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <unordered_map>

#include "chiliad/base/units.h"
#include "chiliad/report/html.h"
#include "chiliad/report/sample_box.h"

namespace chiliad::report {
namespace {

using dataset::BadSample;
using dataset::Problem;

constexpr size_t kMostRows = 50;

/// The most frequent first.
std::string count_table(const char* what, const std::map<std::string, int64_t>& counts) {
  std::vector<std::pair<std::string, int64_t>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  Table table({what, "found"});
  for (size_t i = 0; i < std::min(kMostRows, sorted.size()); ++i)
    table.add({sorted[i].first, std::to_string(sorted[i].second)});
  std::string html = table.to_html();
  if (sorted.size() > kMostRows) html += paragraph(fmt::format("and {} more", sorted.size() - kMostRows));
  return html;
}

std::string not_shown(size_t all, size_t shown) {
  return all > shown ? paragraph(fmt::format("{} more are not shown (--max-items).", all - shown)) : "";
}

/// What is there of a part, if it is a picture.
Thumbnail thumbnail_of(const index::Index& index, int64_t sample, uint32_t part, int32_t side) {
  const index::ShardPtr shard = index.shard_of(sample);
  const index::Part& found = shard->parts.at(part);
  if (found.media != index::MediaType::kImage) return {};
  return read_thumbnail(index, *shard, found, side);
}

void add_state(SampleBox& box) {
  box.facts.push_back(box.thumbnail.png.empty()       ? "nothing of it decodes"
                      : box.thumbnail.problem.empty() ? "decodes whole"
                                                      : "as far as it decodes");
}

std::string found_section(const index::Index& index, const std::vector<Problem>& problems,
                          const VerifyPageOptions& options) {
  if (problems.empty()) return paragraph("Every byte is what was indexed.");
  std::map<std::string, int64_t> reasons;
  std::map<std::string, int64_t> files;
  for (const Problem& problem : problems) {
    ++reasons[reason_pattern(problem.what)];
    ++files[problem.file];
  }
  std::vector<SampleBox> boxes;
  for (size_t i = 0; i < std::min(problems.size(), options.max_items); ++i) {
    const Problem& problem = problems[i];
    SampleBox box{problem.key.empty() ? problem.file : problem.key};
    box.is_bad = true;
    box.text = problem.what;
    if (!problem.key.empty()) box.facts.push_back(problem.file);
    if (problem.sample >= 0) {
      box.thumbnail = thumbnail_of(index, problem.sample, problem.part, options.thumb_side);
      add_state(box);
    }
    boxes.push_back(std::move(box));
  }
  return count_table("reason", reasons) + count_table("file", files) + to_html(boxes) +
         not_shown(problems.size(), boxes.size());
}

/// Parts of the samples whose picture cannot be used, by their keys.
std::unordered_map<std::string, std::pair<int64_t, uint32_t>> unusable_pictures(const index::Index& index) {
  std::unordered_map<std::string, std::pair<int64_t, uint32_t>> found;
  int64_t number = 0;
  for (uint32_t s = 0; s < index.num_shards(); ++s) {
    const index::ShardPtr shard = index.shard(s);
    for (size_t i = 0; i < shard->samples.size(); ++i, ++number) {
      const index::Sample& sample = shard->samples[i];
      if ((sample.flags & index::kBadImage) == 0) continue;
      for (uint32_t p = sample.first_part; p < sample.first_part + sample.num_parts; ++p) {
        if (shard->parts[p].media == index::MediaType::kImage && shard->parts[p].width == 0)
          found.try_emplace(shard->keys[i], number, p);
      }
    }
  }
  return found;
}

std::string refused_section(const index::Index& index, const std::vector<BadSample>& refused,
                            const VerifyPageOptions& options) {
  if (refused.empty()) return paragraph("Nothing was refused.");
  std::map<std::string, int64_t> reasons;
  for (const BadSample& sample : refused) ++reasons[reason_pattern(sample.reason)];
  const auto pictures = unusable_pictures(index);
  // Pictures first: of the others there is nothing to see.
  std::vector<const BadSample*> order;
  for (const BadSample& sample : refused) order.push_back(&sample);
  std::stable_partition(order.begin(), order.end(),
                        [&](const BadSample* sample) { return pictures.contains(sample->key); });
  std::vector<SampleBox> boxes;
  for (size_t i = 0; i < std::min(order.size(), options.max_items); ++i) {
    const BadSample& sample = *order[i];
    SampleBox box{sample.key.empty() ? sample.file : sample.key};
    box.text = sample.reason;
    box.facts.push_back(sample.file);
    const auto found = pictures.find(sample.key);
    if (found != pictures.end()) {
      box.is_bad = true;
      box.thumbnail = thumbnail_of(index, found->second.first, found->second.second, options.thumb_side);
      add_state(box);
    }
    boxes.push_back(std::move(box));
  }
  return count_table("reason", reasons) + to_html(boxes) + not_shown(order.size(), boxes.size());
}

}  // namespace

std::string reason_pattern(const std::string& reason) {
  std::string pattern;
  for (size_t i = 0; i < reason.size(); ++i) {
    const auto is_digit = [](char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; };
    size_t end = i;
    bool has_digit = false;
    while (end < reason.size() && is_digit(reason[end])) {
      has_digit = has_digit || std::isdigit(static_cast<unsigned char>(reason[end])) != 0;
      ++end;
    }
    const bool inside_word = i > 0 && std::isalpha(static_cast<unsigned char>(reason[i - 1])) != 0;
    if (has_digit && !inside_word) {
      pattern += 'N';
      i = end - 1;
    } else {
      pattern += reason[i];
    }
  }
  return pattern;
}

std::string verify_page(const index::Index& index, const dataset::VerifyReport& report,
                        const std::vector<BadSample>& refused, const VerifyPageOptions& options) {
  std::string body = fmt::format("<h1>{}: verified</h1>\n", foreign_text(options.title));
  body += fmt::format("<p class=\"soft\">Made at {} by chiliad data verify</p>\n", escape(options.made_at));
  body += paragraph(fmt::format("{} samples, {} parts, {}: {} problems. {} lines of bad.jsonl.",
                                index.num_samples(), report.num_parts, format_bytes(report.bytes_read),
                                report.problems.size(), refused.size()));
  body += section("Not what was indexed", found_section(index, report.problems, options));
  body += section("Refused when it was indexed", refused_section(index, refused, options));
  return whole_page(fmt::format("{}: verified", options.title), body);
}

}  // namespace chiliad::report
