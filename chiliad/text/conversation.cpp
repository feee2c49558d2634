#include "chiliad/text/conversation.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "chiliad/text/detail/utf8.h"

namespace chiliad::text {
namespace {

using Json = nlohmann::json;

/// Ends the reading of a record; never leaves this file.
struct Refused {
  std::string reason;
};

constexpr int kMaxDepth = 64;

Json parse(std::string_view record) {
  Json json = Json::parse(
      record,
      [](int depth, Json::parse_event_t, Json&) {
        if (depth > kMaxDepth) throw Refused{fmt::format("is nested deeper than {}", kMaxDepth)};
        return true;
      },
      false);
  if (json.is_discarded()) throw Refused{"is not JSON"};
  if (!json.is_object()) throw Refused{fmt::format("expected a record, got {}", json.type_name())};
  return json;
}

/// The first of two names that the object has; null if neither.
const Json* find(const Json& object, const char* name, const char* other) {
  auto it = object.find(name);
  if (it == object.end()) it = object.find(other);
  return it == object.end() ? nullptr : &*it;
}

std::vector<std::string> images_of(const Json& record) {
  if (record.contains("video") && !record["video"].is_null())
    throw Refused{"names a video, which is not read"};
  const Json* images = find(record, "image", "images");
  if (images == nullptr || images->is_null()) return {};
  if (images->is_string()) return {images->get<std::string>()};
  if (!images->is_array())
    throw Refused{fmt::format("image: expected a name or a list of names, got {}", images->type_name())};
  std::vector<std::string> names;
  for (const Json& name : *images) {
    if (!name.is_string()) throw Refused{fmt::format("image: expected names, got {}", name.type_name())};
    names.push_back(name.get<std::string>());
  }
  return names;
}

std::optional<Role> role_of(const std::string& name) {
  if (name == "human" || name == "user") return Role::kUser;
  if (name == "gpt" || name == "assistant" || name == "model") return Role::kAssistant;
  if (name == "system") return Role::kSystem;
  return std::nullopt;
}

Turn turn_of(const Json& turn, size_t number) {
  if (!turn.is_object())
    throw Refused{fmt::format("turn {}: expected an object, got {}", number, turn.type_name())};
  const Json* from = find(turn, "from", "role");
  const Json* value = find(turn, "value", "content");
  if (from == nullptr || !from->is_string())
    throw Refused{fmt::format("turn {}: expected a string `from`", number)};
  if (value == nullptr || !value->is_string()) {
    throw Refused{fmt::format("turn {}: value: expected a string, got {}", number,
                              value == nullptr ? "none" : value->type_name())};
  }
  const auto role = role_of(from->get_ref<const std::string&>());
  if (!role.has_value()) {
    throw Refused{fmt::format("turn {}: expected human, gpt or system, got '{}'", number,
                              from->get_ref<const std::string&>().substr(0, 40))};
  }
  return {*role, value->get<std::string>()};
}

std::vector<Turn> turns_of(const Json& record) {
  const Json* list = find(record, "conversations", "messages");
  if (list == nullptr || !list->is_array()) throw Refused{"expected a list `conversations`, got none"};
  std::vector<Turn> turns;
  for (size_t i = 0; i < list->size(); ++i) turns.push_back(turn_of((*list)[i], i + 1));
  return turns;
}

void check_order(std::vector<Turn>& turns) {
  auto first = turns.begin();
  if (first != turns.end() && first->role == Role::kSystem) ++first;
  if (first != turns.end() && first->role == Role::kAssistant) first = turns.erase(first);
  Role wanted = Role::kUser;
  for (auto turn = first; turn != turns.end(); ++turn) {
    if (turn->role != wanted) {
      throw Refused{fmt::format("turns are out of order: expected human and gpt by turns, got another at {}",
                                turn - turns.begin() + 1)};
    }
    wanted = wanted == Role::kUser ? Role::kAssistant : Role::kUser;
  }
  const bool answered = std::any_of(turns.begin(), turns.end(), [](const Turn& turn) {
    return turn.role == Role::kAssistant && !turn.text.empty();
  });
  if (!answered) throw Refused{"has no answer to train on"};
}

int64_t count_marks(std::string_view text) {
  int64_t count = 0;
  for (size_t at = text.find(kImageMark); at != std::string_view::npos;
       at = text.find(kImageMark, at + kImageMark.size()))
    ++count;
  return count;
}

}  // namespace

Conversation conversation_of_record(std::string_view record) {
  std::string repaired;
  if (detail::replace_broken(record, repaired)) record = repaired;
  Conversation made;
  try {
    const Json json = parse(record);
    made.images = images_of(json);
    made.turns = turns_of(json);
    check_order(made.turns);
    for (const Turn& turn : made.turns) made.num_marks += count_marks(turn.text);
    const auto num_images = static_cast<int64_t>(made.images.size());
    if (made.num_marks != 0 && made.num_marks != num_images) {
      throw Refused{
          fmt::format("has {} marks <image> and {} pictures: expected as many", made.num_marks, num_images)};
    }
  } catch (Refused& refused) {
    return {{}, {}, 0, std::move(refused.reason)};
  }
  return made;
}

}  // namespace chiliad::text
