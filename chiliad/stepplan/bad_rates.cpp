#include "chiliad/stepplan/bad_rates.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/base/json_text.h"
#include "chiliad/base/planted.h"

namespace chiliad::stepplan {
namespace {

constexpr int64_t kMinItems = 100;
constexpr size_t kKeysNamed = 4;

/// A large index is not read for it: what is in memory alone.
bool has_several_sources(const index::Index& index) {
  if (!index.is_loaded()) return false;
  std::optional<uint16_t> first;
  for (const index::Shard& shard : index.shards()) {
    for (const index::Sample& sample : shard.samples) {
      if (!first.has_value()) first = sample.source;
      if (sample.source != *first) return true;
    }
  }
  return false;
}

}  // namespace

SampleGroups::SampleGroups(const index::Index& index)
    : index_(index),
      by_member_(index.members().size() > 1),
      by_source_(!by_member_ && has_several_sources(index)) {}

uint32_t SampleGroups::of(int64_t sample) const {
  if (by_member_) {
    const auto& members = index_.members();
    const auto holds = [&](const index::Index::Member& member) { return sample < member.end_sample; };
    return static_cast<uint32_t>(std::find_if(members.begin(), members.end(), holds) - members.begin());
  }
  return by_source_ ? index_.sample(sample).source : index_.locate(sample).shard;
}

std::string SampleGroups::name(uint32_t group) const {
  if (by_member_) return "source " + index_.members().at(group).folder.filename().string();
  if (by_source_) return fmt::format("source {}", group);
  const auto held = index_.shard(group);
  const index::Shard& shard = *held;
  if (shard.files.size() == 1) return "shard " + shard.files.front().path;
  const auto& entries = index_.manifest().shards;
  return group < entries.size() ? "shard " + entries[group].sidecar : fmt::format("shard {}", group);
}

std::vector<GroupCount> count_groups(const Step& step, const SampleGroups& groups) {
  std::map<uint32_t, int64_t> counts;
  for (const Item& item : step.items) {
    if (item.weight > 0.0F) ++counts[groups.of(item.sample)];
  }
  std::vector<GroupCount> list;
  for (const auto& [group, count] : counts) list.push_back({group, count});
  return list;
}

std::string reason_kind(std::string_view reason) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kWords{{
      {": storage: ", "storage"},
      {": checksum: expected", "checksum"},
      {": ends at byte ", "short file"},
      {": picture: ", "picture"},
      {": caption: ", "caption"},
  }};
  for (const auto& [words, kind] : kWords) {
    if (reason.find(words) != std::string_view::npos) return std::string(kind);
  }
  return "other";
}

std::string reason_histogram(const std::vector<Amendment>& amendments) {
  std::map<std::string, int64_t> counts;
  for (const Amendment& amendment : amendments) ++counts[reason_kind(amendment.reason)];
  std::vector<std::pair<std::string, int64_t>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (const auto& [kind, count] : sorted)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", kind, count);
  return text;
}

BadRateOptions bad_rate_options(const spec::DataOptions& data) {
  BadRateOptions options{data.bad_window, data.max_bad_fraction, data.max_bad_fraction_source};
  if (options.max_fraction_source == 0.0)
    options.max_fraction_source = std::min(2 * options.max_fraction, 1.0);
  return options;
}

void BadRates::slide(Window& window) const {
  while (!window.findings.empty() && window.findings.front().at <= window.seen - options_.window)
    window.findings.pop_front();
}

std::optional<BadExcess> BadRates::excess(const Window& window, double bound) const {
  const auto num_bad = static_cast<int64_t>(window.findings.size());
  const int64_t held = std::min(window.seen, options_.window);
  const int64_t num_items = std::max(held, std::min(kMinItems, options_.window));
  if (static_cast<double>(num_bad) <= bound * static_cast<double>(num_items)) return std::nullopt;
  if (planted_bug("bad_rates_ignored")) return std::nullopt;
  BadExcess found{std::nullopt, num_bad, num_items, bound, {}};
  for (const Finding& finding : window.findings) found.samples.push_back(finding.sample);
  return found;
}

std::optional<BadExcess> BadRates::add_step(std::span<const GroupCount> seen,
                                            std::span<const Amendment> found, const SampleGroups& groups) {
  for (const GroupCount& one : seen) {
    all_.seen += one.count;
    groups_[one.group].seen += one.count;
  }
  std::map<uint32_t, Window*> touched;
  for (const Amendment& amendment : found) {
    const uint32_t group = groups.of(amendment.sample);
    Window& window = groups_[group];
    touched[group] = &window;
    window.findings.push_back({window.seen, amendment.sample});
    all_.findings.push_back({all_.seen, amendment.sample});
  }
  slide(all_);
  for (auto& [group, window] : groups_) slide(window);
  for (const auto& [group, window] : touched) {
    auto crossed = excess(*window, options_.max_fraction_source);
    if (!crossed.has_value()) continue;
    crossed->group = group;
    return crossed;
  }
  return found.empty() ? std::nullopt : excess(all_, options_.max_fraction);
}

std::string BadRates::to_json() const {
  const auto text = [](const Window& window) {
    auto findings = nlohmann::json::array();
    for (const Finding& finding : window.findings) findings.push_back({finding.at, finding.sample});
    return nlohmann::json{{"seen", window.seen}, {"found", std::move(findings)}};
  };
  // Most groups have no findings: one number each.
  auto seen = nlohmann::json::array();
  auto found = nlohmann::json::object();
  for (const auto& [group, window] : groups_) {
    seen.push_back({group, window.seen});
    if (!window.findings.empty()) found[std::to_string(group)] = text(window).at("found");
  }
  return json_text(
      nlohmann::json{{"all", text(all_)}, {"groups", std::move(seen)}, {"found", std::move(found)}});
}

BadRates BadRates::from_json(const std::string& text, const BadRateOptions& options) {
  BadRates rates(options);
  const auto read = [](const nlohmann::json& list, Window& window) {
    for (const auto& entry : list)
      window.findings.push_back({entry.at(0).get<int64_t>(), entry.at(1).get<int64_t>()});
  };
  try {
    const auto json = parse_json<nlohmann::json>(text);
    rates.all_.seen = json.at("all").at("seen").get<int64_t>();
    read(json.at("all").at("found"), rates.all_);
    for (const auto& entry : json.at("groups"))
      rates.groups_[entry.at(0).get<uint32_t>()].seen = entry.at(1).get<int64_t>();
    for (const auto& [group, list] : json.at("found").items())
      read(list, rates.groups_[static_cast<uint32_t>(std::stoul(group))]);
  } catch (const std::exception& error) {
    throw CorruptData("rates of bad items",
                      fmt::format("expected what a checkpoint holds, got '{:.80}' ({})", text, error.what()));
  }
  return rates;
}

std::string excess_text(const BadExcess& excess, const Journal& journal, const index::Index& index,
                        const SampleGroups& groups) {
  std::map<int64_t, const Amendment*> by_sample;
  for (const Amendment& amendment : journal.amendments()) by_sample.emplace(amendment.sample, &amendment);
  std::vector<Amendment> found;
  std::string first;
  for (const int64_t sample : excess.samples) {
    const auto entry = by_sample.find(sample);
    if (entry == by_sample.end()) continue;
    found.push_back(*entry->second);
    if (found.size() == 1) first = entry->second->reason;  // begins with its key
    if (found.size() > 1 && found.size() <= kKeysNamed) first += ", " + index.key(sample);
  }
  const char* key = excess.group.has_value() ? "data.max_bad_fraction_source" : "data.max_bad_fraction";
  return fmt::format(
      "{}: {} of the last {} items were found bad, more than {} {}: {}. First: {}. Look at them with "
      "`chiliad "
      "data quarantine RUN_DIR` and mend the data; or raise {}. The same command goes on from the last "
      "checkpoint",
      excess.group.has_value() ? groups.name(*excess.group) : "all data", excess.num_bad, excess.num_items,
      key, excess.bound, reason_histogram(found), first, key);
}

}  // namespace chiliad::stepplan
