#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "chiliad/index/index.h"

namespace chiliad::dataset::detail {

/// What an expression may ask of a sample; numbers and 0 or 1.
struct Row {
  int64_t num_captions = 0;
  const index::Part* image = nullptr;  ///< null: no picture
  int64_t caption_bytes = 0;           ///< stored bytes of its captions
  index::ShardPtr held{};              ///< what the pointers lie in
};

/// A condition over columns: comparisons (< <= > >= == !=) of sums and products of numbers and columns,
/// joined by and, or, not and parentheses. `width >= 256 and aspect <= 2`.
class Where {
 public:
  /// Empty: always true. Throws InvalidInput naming the column and place in the text.
  [[nodiscard]] static Where parse(std::string_view text);
  [[nodiscard]] bool holds(const Row& row) const { return !condition_ || condition_(row) != 0.0; }
  /// For help and messages.
  [[nodiscard]] static std::vector<std::string> columns();

  using Value = std::function<double(const Row&)>;

 private:
  Value condition_;
};

}  // namespace chiliad::dataset::detail
