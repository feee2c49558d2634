#include "chiliad/dataset/remote_names.h"

#include <fmt/core.h>

#include <charconv>
#include <optional>
#include <string_view>

#include "chiliad/base/error.h"
#include "chiliad/store/store.h"

namespace chiliad::dataset {
namespace {

constexpr size_t kMostNames = 1'000'000;

[[noreturn]] void refuse(const std::string& address, const std::string& braces) {
  throw InvalidInput(address,
                     fmt::format("{{{}}}: expected {{FIRST..LAST}} or {{A,B,...}} in the last part", braces));
}

std::optional<int64_t> number(std::string_view text) {
  int64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() || value < 0)
    return std::nullopt;
  return value;
}

/// What stands for the inside of a pair of braces.
std::vector<std::string> choices(const std::string& address, const std::string& inside) {
  std::vector<std::string> words;
  const size_t dots = inside.find("..");
  if (dots == std::string::npos) {
    if (inside.find(',') == std::string::npos) refuse(address, inside);
    size_t at = 0;
    while (at <= inside.size()) {
      const size_t comma = std::min(inside.find(',', at), inside.size());
      words.push_back(inside.substr(at, comma - at));
      at = comma + 1;
    }
    return words;
  }
  const std::string first = inside.substr(0, dots);
  const auto from = number(first);
  const auto to = number(std::string_view(inside).substr(dots + 2));
  if (!from.has_value() || !to.has_value() || *from > *to || *to - *from >= static_cast<int64_t>(kMostNames))
    refuse(address, inside);
  const size_t width = first.starts_with('0') ? first.size() : 0;
  for (int64_t value = *from; value <= *to; ++value) words.push_back(fmt::format("{:0{}}", value, width));
  return words;
}

std::vector<std::string> expanded(const std::string& address, const std::string& pattern) {
  std::vector<std::string> names{""};
  size_t at = 0;
  while (at < pattern.size()) {
    const size_t open = std::min(pattern.find('{', at), pattern.size());
    for (std::string& name : names) name += pattern.substr(at, open - at);
    if (open == pattern.size()) break;
    const size_t close = pattern.find('}', open);
    if (close == std::string::npos) refuse(address, pattern.substr(open + 1));
    std::vector<std::string> longer;
    const auto words = choices(address, pattern.substr(open + 1, close - open - 1));
    if (words.size() * names.size() > kMostNames) refuse(address, pattern.substr(open + 1, close - open - 1));
    for (const std::string& name : names) {
      for (const std::string& word : words) longer.push_back(name + word);
    }
    names = std::move(longer);
    at = close + 1;
  }
  return names;
}

}  // namespace

RemoteSource parse_remote_source(const std::string& address) {
  RemoteSource source{address};
  while (source.root.ends_with('/')) source.root.pop_back();
  const size_t slash = source.root.rfind('/');
  const std::string last = source.root.substr(slash + 1);
  const size_t brace = address.find('{');
  if (brace != std::string::npos && brace < slash) refuse(address, "");
  const bool one = last.ends_with(".tar") || last.ends_with(".jsonl") || last.ends_with(".txt");
  if (brace == std::string::npos && !one) return source;
  source.names = expanded(address, last);
  source.root.resize(slash);
  return source;
}

void refuse_remote(const index::Index& index) {
  const std::string& root = index.manifest().root;
  if (!store::is_remote(root)) return;
  throw InvalidInput(root, "lies in a store, expected files. Use a copy here, with an index of its own");
}

}  // namespace chiliad::dataset
