#pragma once

#include <filesystem>

namespace chiliad::test {

/// The golden kit: CHILIAD_GOLDEN (the folder with `data/`, or that folder itself), else tests/data/golden.
[[nodiscard]] std::filesystem::path golden_kit();
/// The kit of hard files: CHILIAD_HARDFILES, else tests/data/hardfiles. It holds index.json.
[[nodiscard]] std::filesystem::path hard_files_kit();

}  // namespace chiliad::test
