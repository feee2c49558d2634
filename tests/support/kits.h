#pragma once

#include <filesystem>
#include <string>

namespace chiliad::test {

/// The golden kit: CHILIAD_GOLDEN (the folder with `data/`, or that folder itself), else tests/data/golden.
[[nodiscard]] std::filesystem::path golden_kit();
/// The kit of hard files: CHILIAD_HARDFILES, else tests/data/hardfiles. It holds index.json.
[[nodiscard]] std::filesystem::path hard_files_kit();
/// Its index.json, in which keys of tars that are not UTF-8 (halves of surrogate pairs, which no JSON reader
/// takes) are blanks and digits.
[[nodiscard]] std::string hard_files_index();

}  // namespace chiliad::test
