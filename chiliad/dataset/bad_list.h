#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "chiliad/dataset/build_index.h"

namespace chiliad::dataset {

/// One JSON object a line; bytes that are not UTF-8 appear as U+FFFD. Atomic.
void write_bad_list(const std::filesystem::path& path, const std::vector<BadSample>& bad);
/// Nothing if the file is missing or not of the form.
[[nodiscard]] std::optional<std::vector<BadSample>> read_bad_list(const std::filesystem::path& path);

}  // namespace chiliad::dataset
