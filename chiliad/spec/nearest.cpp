#include "chiliad/spec/nearest.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace chiliad::spec {

int edit_distance(std::string_view a, std::string_view b) {
  std::vector<int> before_last(b.size() + 1);
  std::vector<int> last(b.size() + 1);
  std::vector<int> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    before_last.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

std::optional<std::string> nearest_name(std::string_view name, const std::vector<std::string>& names) {
  constexpr size_t kMaxLength = 64;  // the cost is quadratic, and longer names are no slips of a finger
  if (name.size() > kMaxLength) return std::nullopt;
  const std::string* best = nullptr;
  int best_distance = std::max(1, static_cast<int>(name.size() + 1) / 3);
  for (const std::string& candidate : names) {
    const int distance = edit_distance(name, candidate);
    if (distance > best_distance || (best != nullptr && distance == best_distance)) continue;
    best = &candidate;
    best_distance = distance;
  }
  if (best == nullptr) return std::nullopt;
  return *best;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& names) {
  if (const auto nearest = nearest_name(name, names)) return fmt::format("Did you mean {}?", *nearest);
  return fmt::format("Known: {}.", fmt::join(names, ", "));
}

}  // namespace chiliad::spec
