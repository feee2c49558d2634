#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace chiliad::spec::detail {

/// A node of a YAML document without anchors, aliases and tags. An entry of a map carries its key.
struct YamlNode {
  enum class Kind { kNull, kScalar, kList, kMap };

  Kind kind = Kind::kNull;
  std::string text;             ///< of a scalar
  bool quoted = false;          ///< scalar in quotes, or a block of text: never a number or a boolean
  std::string place;            ///< "file:line:column", counted from 1
  std::string key;              ///< inside a map
  std::string key_place;        ///< inside a map
  std::vector<YamlNode> items;  ///< of a list or a map, in the order of the file
};

/// The one document in `text`. Throws InvalidInput with place "name:line:column" (or "name") where the text
/// is not UTF-8, holds control characters, tabs, directives, tags, anchors, aliases, a key twice, more than
/// one document, or nesting deeper than a run file has.
[[nodiscard]] YamlNode parse_yaml(std::string_view text, const std::string& name);

}  // namespace chiliad::spec::detail
