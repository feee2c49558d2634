#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace chiliad {

/// Who of several that should be alike is not.
struct Odd {
  std::vector<size_t> places;  ///< ascending; empty: all are alike
  bool decided = true;         ///< false: no value is the most frequent one; `places` then names all
};

/// Compares values with their most frequent one. Of two that differ, nobody can say which is wrong.
template <typename T>
[[nodiscard]] Odd odd_ones(std::span<const T> values) {
  const auto count_of = [&](const T& value) { return std::count(values.begin(), values.end(), value); };
  const T* common = nullptr;
  std::ptrdiff_t most = 0;
  bool tie = false;
  for (const T& value : values) {
    if (common != nullptr && value == *common) continue;
    const auto count = count_of(value);
    if (count < most) continue;
    tie = count == most;
    most = count;
    common = &value;
  }
  Odd odd;
  odd.decided = !tie;
  for (size_t i = 0; i < values.size(); ++i) {
    if (tie || !(values[i] == *common)) odd.places.push_back(i);
  }
  return odd;
}

}  // namespace chiliad
