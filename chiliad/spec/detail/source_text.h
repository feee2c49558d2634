#pragma once

#include <string>
#include <string_view>

namespace chiliad::spec::detail {

/// Throws InvalidInput with "name:line:column" where `text` is not UTF-8 (naming the byte offset), or holds
/// control characters, tabs or a YAML directive.
void check_source_text(std::string_view text, const std::string& name);

/// Offset of the first byte that is not part of well-formed UTF-8, or text.size().
[[nodiscard]] size_t first_bad_utf8(std::string_view text);

/// `text` in double quotes for a message: cut to a readable length, control characters escaped.
[[nodiscard]] std::string quote(std::string_view text);

}  // namespace chiliad::spec::detail
