#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace chiliad::weights::detail {

/// null, a boolean, a negative integer, a non-negative integer, any other number, text.
using JsonScalar = std::variant<std::nullptr_t, bool, int64_t, uint64_t, double, std::string>;

/// Keys from the root to a value; "" for each level that is a list. Empty at the root.
using JsonPath = std::vector<std::string>;

/// Receives a JSON text piece by piece, so that nothing is built for parts that are refused or not wanted.
class JsonHandler {
 public:
  virtual ~JsonHandler() = default;
  virtual void on_open(const JsonPath& path, bool is_object) = 0;
  virtual void on_close(const JsonPath& path) = 0;
  virtual void on_scalar(const JsonPath& path, const JsonScalar& value) = 0;
};

/// Feeds `text` to `handler`. Throws CorruptData(place, "`what`: ...") where it is not UTF-8 or not JSON
/// (with the byte offset), is nested deeper than `max_depth`, or an object has a key twice.
void read_strict_json(std::string_view text, const std::string& place, const std::string& what,
                      size_t max_depth, JsonHandler& handler);

/// `name` in quotes for a message: control characters escaped, cut to a readable length.
[[nodiscard]] std::string quote_name(std::string_view name);

}  // namespace chiliad::weights::detail
