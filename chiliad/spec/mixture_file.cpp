#include "chiliad/spec/mixture_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/spec/detail/yaml_tree.h"
#include "chiliad/spec/nearest.h"

namespace chiliad::spec {
namespace {

using detail::YamlNode;
using Kind = Sampling::Kind;

constexpr size_t kMaxEntries = 10'000;

[[noreturn]] void refuse(const YamlNode& node, const std::string& what) {
  throw InvalidInput(node.place, what);
}

/// "10" or "10%", the whole of `text`.
bool read_number(std::string_view text, Sampling& sampling) {
  sampling.percent = text.ends_with('%');
  if (sampling.percent) text.remove_suffix(1);
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), sampling.number);
  if (problem != std::errc() || end != text.data() + text.size() || sampling.number < 1) return false;
  return !sampling.percent || sampling.number <= 100;
}

Sampling sampling_of(const YamlNode& node) {
  const auto wrong = [&] {
    refuse(node,
           fmt::format("sampling_strategy: expected all, first:N, end:N or random:N, N a number from 1 or a "
                       "percentage of 1% to 100%, got '{}'",
                       node.text));
  };
  Sampling sampling;
  const std::string_view text = node.text;
  if (node.kind != YamlNode::Kind::kScalar) wrong();
  if (text == "all") return sampling;
  const size_t colon = text.find(':');
  const std::string_view word = text.substr(0, colon);
  if (word == "first") {
    sampling.kind = Kind::kFirst;
  } else if (word == "end") {
    sampling.kind = Kind::kEnd;
  } else if (word == "random") {
    sampling.kind = Kind::kRandom;
  } else {
    wrong();
  }
  if (colon == std::string_view::npos || !read_number(text.substr(colon + 1), sampling)) wrong();
  return sampling;
}

MixtureEntry entry_of(const YamlNode& node) {
  if (node.kind != YamlNode::Kind::kMap) refuse(node, "datasets: expected {json_path, sampling_strategy}");
  MixtureEntry entry;
  entry.place = node.place;
  for (const YamlNode& field : node.items) {
    if (field.key == "json_path") {
      if (field.kind != YamlNode::Kind::kScalar || field.text.empty())
        refuse(field, "json_path: expected the path of a .json or .jsonl");
      entry.path = field.text;
    } else if (field.key == "sampling_strategy") {
      entry.sampling = sampling_of(field);
    } else {
      throw InvalidInput(field.key_place,
                         fmt::format("{}: unknown key. {}", field.key,
                                     did_you_mean(field.key, {"json_path", "sampling_strategy"})));
    }
  }
  if (entry.path.empty()) refuse(node, "json_path: is missing: expected the path of a .json or .jsonl");
  return entry;
}

/// DIR/{a,b}.json as DIR/a.json and DIR/b.json.
void add_expanded(MixtureEntry entry, std::vector<MixtureEntry>& entries) {
  const size_t open = entry.path.find('{');
  const size_t close = entry.path.find('}', open == std::string::npos ? 0 : open);
  if (open == std::string::npos || close == std::string::npos) return entries.push_back(std::move(entry));
  const std::string before = entry.path.substr(0, open);
  const std::string after = entry.path.substr(close + 1);
  for (size_t at = open + 1; at <= close;) {
    const size_t end = std::min(entry.path.find(',', at), close);
    MixtureEntry one = entry;
    one.path = before + entry.path.substr(at, end - at) + after;
    entries.push_back(std::move(one));
    at = end + 1;
  }
}

const YamlNode& list_in(const YamlNode& root) {
  if (root.kind == YamlNode::Kind::kList) return root;
  if (root.kind == YamlNode::Kind::kMap) {
    const auto found = std::find_if(root.items.begin(), root.items.end(),
                                    [](const YamlNode& item) { return item.key == "datasets"; });
    if (found != root.items.end() && found->kind == YamlNode::Kind::kList) return *found;
  }
  refuse(root, "expected a list `datasets` of {json_path, sampling_strategy}, as LLaVA-NeXT reads it");
}

}  // namespace

int64_t Sampling::count(int64_t num_records) const {
  if (kind == Kind::kAll) return num_records;
  const int64_t wanted = percent ? (num_records * number + 99) / 100 : number;
  return std::min(wanted, num_records);
}

std::vector<MixtureEntry> parse_mixture(std::string_view text, const std::string& name) {
  const YamlNode root = detail::parse_yaml(text, name);
  const YamlNode& list = list_in(root);
  std::vector<MixtureEntry> entries;
  for (const YamlNode& item : list.items) add_expanded(entry_of(item), entries);
  if (entries.empty()) refuse(list, "datasets: expected one file at least, got none");
  if (entries.size() > kMaxEntries)
    refuse(list, fmt::format("datasets: expected at most {} files, got {}", kMaxEntries, entries.size()));
  return entries;
}

}  // namespace chiliad::spec
