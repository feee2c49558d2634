#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace chiliad::spec {

/// Edits (insert, delete, replace, swap of neighbours) that turn `a` into `b`. Bytes, not characters.
[[nodiscard]] int edit_distance(std::string_view a, std::string_view b);

/// The name among `names` that `name` most likely means; nothing if none is near. The first of equals.
[[nodiscard]] std::optional<std::string> nearest_name(std::string_view name,
                                                      const std::vector<std::string>& names);

/// The end of a message about an unknown `name`: `Did you mean X?` where one is near, else `Known: A, B, C.`
[[nodiscard]] std::string did_you_mean(std::string_view name, const std::vector<std::string>& names);

}  // namespace chiliad::spec
