#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chiliad/io/file.h"

namespace chiliad::dataset::detail {

/// Records of JSON are not nested deeper; what is, is refused.
inline constexpr int kMaxJsonDepth = 64;

/// Where a string stands in a JSON text, with its quotes.
struct JsonString {
  size_t name = 0;  ///< in the names that were asked for
  uint32_t offset = 0;
  uint32_t length = 0;
};

struct JsonStrings {
  std::vector<JsonString> found;  ///< in the order of the text
  std::string problem;            ///< why the text is no JSON object; `found` is then empty
};

/// Finds the strings that the top-level fields `names` of a JSON object hold: a string, or each string of a
/// list. Of a repeated field the last counts. Offsets are to the byte, also where bytes are not UTF-8.
[[nodiscard]] JsonStrings find_json_strings(std::string_view text, std::span<const std::string> names);

/// A record of a file, with its bytes.
struct Record {
  int64_t number = 0;     ///< line, row or place in the list, from 1
  uint64_t offset = 0;    ///< of its first byte in the file
  std::string_view text;  ///< without white space around it; empty where there is a problem
  std::string problem;    ///< why it cannot be read
};

}  // namespace chiliad::dataset::detail
