#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace chiliad::text {

enum class Role : uint8_t { kSystem, kUser, kAssistant };

struct Turn {
  Role role = Role::kUser;
  std::string text;  ///< to the byte as the record has it, with its `<image>` marks
};

/// What a record of LLaVA's kind says. `refusal` tells why it cannot be trained on; the rest is then empty.
struct Conversation {
  std::vector<Turn> turns;          ///< an optional system turn, then user and assistant by turns
  std::vector<std::string> images;  ///< names as the record has them, in order
  int64_t num_marks = 0;  ///< `<image>` in all turns; 0 with pictures: they stand before the first turn
  std::string refusal;
};

inline constexpr std::string_view kImageMark = "<image>";

/// Reads one record, a JSON object:
/// - `conversations` (or `messages`): turns {from, value} or {role, content}; human and user are the user,
///   gpt, assistant and model the assistant, system only comes first. A first turn of the assistant is left
///   out, as LLaVA does; then user and assistant must alternate, and one answer must hold text.
/// - `image` (or `images`): a name, a list of names, null or nothing.
/// - As many marks as pictures, or no mark at all.
/// Bytes that are not UTF-8 count as U+FFFD. Thread-safe.
[[nodiscard]] Conversation conversation_of_record(std::string_view record);

}  // namespace chiliad::text
