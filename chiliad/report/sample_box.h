#pragma once

#include <string>
#include <vector>

#include "chiliad/report/thumbnail.h"

namespace chiliad::report {

/// What a page shows of a sample. Texts are plain.
struct SampleBox {
  std::string key;
  Thumbnail thumbnail{};
  std::vector<std::string> facts{};  ///< a line each
  std::string text{};                ///< of the user's; may be empty
  bool is_bad = false;
};

[[nodiscard]] std::string to_html(const SampleBox& box);
/// A grid of boxes.
[[nodiscard]] std::string to_html(const std::vector<SampleBox>& boxes);

}  // namespace chiliad::report
