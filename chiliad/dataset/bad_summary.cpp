#include "chiliad/dataset/bad_summary.h"

#include <algorithm>
#include <map>
#include <string_view>

namespace chiliad::dataset {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// "image: NAME: is missing" as "image: is missing": what stands behind the last colon says why.
std::string_view without_name(std::string_view reason, std::string& start) {
  constexpr std::string_view kImage = "image: ";
  if (!reason.starts_with(kImage)) return reason;
  const size_t last = reason.rfind(": ");
  start = kImage;
  return reason.substr(last + 2);
}

std::string kind_of(std::string_view reason) {
  std::string kind;
  for (const char c : without_name(reason, kind)) {
    if (!is_digit(c)) {
      kind.push_back(c);
    } else if (!kind.ends_with('N')) {
      kind.push_back('N');
    }
  }
  return kind;
}

}  // namespace

std::vector<ReasonCount> count_reasons(const std::vector<BadSample>& bad, size_t most) {
  std::map<std::string, int64_t> counts;
  for (const BadSample& sample : bad) ++counts[kind_of(sample.reason)];
  std::vector<ReasonCount> kinds;
  for (const auto& [kind, count] : counts) kinds.push_back({kind, count});
  std::stable_sort(kinds.begin(), kinds.end(),
                   [](const auto& a, const auto& b) { return a.count > b.count; });
  kinds.resize(std::min(kinds.size(), most));
  return kinds;
}

}  // namespace chiliad::dataset
