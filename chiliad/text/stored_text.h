#pragma once

#include <string_view>

#include "chiliad/text/document_encoder.h"

namespace chiliad::text {

/// Without white space at both ends: space, tab, CR, LF, VT, FF.
[[nodiscard]] std::string_view trim(std::string_view text);

/// The text of a JSON string literal (its quotes included), unescaped and trimmed. Bytes that are not UTF-8
/// count as U+FFFD. `refusal` where it is none, or holds half of a surrogate pair.
[[nodiscard]] LineDocument text_of_json_string(std::string_view literal);

/// The text of a CSV or TSV field: one that begins with a quote loses it and the last one, and two quotes in
/// it are one (RFC 4180); others stay as they are. Trimmed; bytes that are not UTF-8 count as U+FFFD.
[[nodiscard]] LineDocument text_of_csv_field(std::string_view field);

}  // namespace chiliad::text
