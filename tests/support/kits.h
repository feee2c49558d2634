#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace chiliad::test {

/// The golden kit: CHILIAD_GOLDEN (the folder with `data/`, or that folder itself), else tests/data/golden.
[[nodiscard]] std::filesystem::path golden_kit();
/// The kit of hard files: CHILIAD_HARDFILES, else tests/data/hardfiles. It holds index.json.
[[nodiscard]] std::filesystem::path hard_files_kit();
/// Begin of "<byte:ff>".
inline constexpr std::string_view kByteMark = "<byte:";
/// Its index.json. Keys of tars write a byte that is not UTF-8 as \udcXX there, halves of surrogate pairs,
/// which no JSON reader takes: they are marks here.
[[nodiscard]] std::string hard_files_index();

}  // namespace chiliad::test
