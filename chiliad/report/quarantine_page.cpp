#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "chiliad/base/json_text.h"
#include "chiliad/report/html.h"
#include "chiliad/report/quarantine.h"

namespace chiliad::report {
namespace {

using Items = std::vector<QuarantinedItem>;
constexpr size_t kMostRows = 50;

struct Count {
  int64_t found = 0;
  int64_t good = 0;
};

/// Most frequent first.
std::vector<std::pair<std::string, Count>> count_by(
    const Items& items, const std::function<std::string(const QuarantinedItem&)>& name) {
  std::map<std::string, Count> counts;
  for (const auto& item : items) {
    Count& count = counts[name(item)];
    ++count.found;
    if (item.state == ItemState::kGood) ++count.good;
  }
  std::vector<std::pair<std::string, Count>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.found > b.second.found; });
  return sorted;
}

std::string kind_of(const QuarantinedItem& item) {
  return item.kind;
}
std::string group_of(const QuarantinedItem& item) {
  return item.group;
}
std::string file_of(const QuarantinedItem& item) {
  return item.file.empty() ? "no file" : item.file;
}

std::string histogram(const Items& items, const char* what,
                      const std::function<std::string(const QuarantinedItem&)>& name) {
  Table table({what, "found", "good now"});
  const auto counts = count_by(items, name);
  for (size_t i = 0; i < std::min(counts.size(), kMostRows); ++i) {
    const auto& [label, count] = counts[i];
    table.add({label, std::to_string(count.found), std::to_string(count.good)});
  }
  std::string html = table.to_html();
  if (counts.size() > kMostRows) html += paragraph(fmt::format("and {} more", counts.size() - kMostRows));
  return html;
}

std::string soft(std::string_view text) {
  return "<p class=\"soft\">" + escape(text) + "</p>\n";
}

std::string item_box(const QuarantinedItem& item) {
  std::string html = fmt::format("<div class=\"item{}\">", item.state == ItemState::kGood ? "" : " bad");
  if (!item.thumb.empty()) html += picture(item.thumb, item.key);
  html += "<strong>" + foreign_text(item.key) + "</strong>\n";
  html += soft(item.thumb.empty() ? "nothing of it decodes"
               : item.is_partial  ? "as far as it decodes"
                                  : "decodes whole");
  html += soft(fmt::format("{} bytes {} to {}", item.file, item.first_byte, item.end_byte));
  html += soft(fmt::format("left out from step {}{}", item.amendment.from_step,
                           item.amendment.found_at.empty() ? "" : ", found " + item.amendment.found_at));
  html += "<p>" + foreign_text(item.amendment.reason) + "</p>\n";
  const std::string now = item.state == ItemState::kGood ? "good" : item.now;
  return html + "<p><strong>Now: </strong>" + foreign_text(now) + "</p></div>\n";
}

nlohmann::ordered_json counts_json(const Items& items,
                                   const std::function<std::string(const QuarantinedItem&)>& name) {
  auto json = nlohmann::ordered_json::object();
  for (const auto& [label, count] : count_by(items, name))
    json[label] = {{"found", count.found}, {"good", count.good}};
  return json;
}

}  // namespace

std::string quarantine_page(const Items& items, const QuarantinePageOptions& options) {
  const auto good = std::count_if(items.begin(), items.end(),
                                  [](const auto& item) { return item.state == ItemState::kGood; });
  std::string body = "<h1>" + foreign_text(options.title) + ": quarantine</h1>\n" +
                     soft("Made at " + options.made_at + " by chiliad data quarantine");
  body +=
      paragraph(items.empty() ? std::string("No item was found bad.")
                              : fmt::format("{} items were found bad and left out; {} of them are good now.",
                                            items.size(), good));
  if (!items.empty()) {
    body += section("By reason", histogram(items, "reason", kind_of));
    body += section("By source or shard", histogram(items, "source or shard", group_of));
    body += section("By file", histogram(items, "file", file_of));
    std::string boxes;
    for (size_t i = 0; i < std::min(items.size(), options.max_items); ++i) boxes += item_box(items[i]);
    boxes = "<div class=\"items\">" + boxes + "</div>\n";
    if (items.size() > options.max_items)
      boxes +=
          paragraph(fmt::format("{} more are not shown (--max-items).", items.size() - options.max_items));
    body += section("Items, in the order of finding", boxes);
  }
  return whole_page(options.title + ": quarantine", body);
}

std::string quarantine_json(const Items& items, std::string_view out) {
  nlohmann::ordered_json page{{"out", out}, {"items", items.size()}};
  page["by_reason"] = counts_json(items, kind_of);
  page["by_group"] = counts_json(items, group_of);
  page["by_file"] = counts_json(items, file_of);
  page["found"] = nlohmann::ordered_json::array();
  for (const auto& item : items) {
    page["found"].push_back({{"sample", item.amendment.sample},
                             {"key", item.key},
                             {"group", item.group},
                             {"file", item.file},
                             {"bytes", {item.first_byte, item.end_byte}},
                             {"kind", item.kind},
                             {"reason", item.amendment.reason},
                             {"from_step", item.amendment.from_step},
                             {"found_at", item.amendment.found_at},
                             {"now", state_name(item.state)},
                             {"now_reason", item.now}});
  }
  return json_text_replacing(page);
}

}  // namespace chiliad::report
