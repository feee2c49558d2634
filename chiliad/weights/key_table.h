#pragma once

#include <functional>
#include <map>
#include <optional>
#include <regex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chiliad/base/shape.h"
#include "chiliad/spec/layer_table.h"

namespace chiliad::weights {

/// One line of a key table. `pattern` is an ECMAScript expression that is searched in the key (anchor it);
/// `replacement` may use $1 to $9.
struct KeyRule {
  enum class Kind {
    kRename,  ///< the first match is replaced; later rules see the result
    kAlias,   ///< the same, for a copy of another tensor: used only where that one is not there
    kIgnore,  ///< a tensor that we do not need; later rules do not see it
    kSplit,   ///< several of our tensors of equal size, one after the other in its rows; `parts` replace it
  };
  std::string pattern;
  std::string replacement;
  Kind kind = Kind::kRename;
  std::vector<std::string> parts = {};
};

/// How the keys of a checkpoint layout become ours. Immutable; thread-safe.
class KeyTable {
 public:
  /// Keys are ours already.
  KeyTable() = default;
  /// Rules apply in order. Throws InternalError for an expression that is none.
  explicit KeyTable(std::vector<KeyRule> rules);

  struct Key {
    std::string name;
    bool is_alias = false;
    int64_t part = 0;  ///< of num_parts, in the rows
    int64_t num_parts = 1;
  };
  /// Our names of a key: none where the tensor is not needed, several where it is split.
  [[nodiscard]] std::vector<Key> translate_all(std::string_view theirs) const;
  /// Our name of a key, the first one; nothing where the tensor is not needed.
  [[nodiscard]] std::optional<Key> translate(std::string_view theirs) const;
  /// The name alone.
  [[nodiscard]] std::optional<std::string> ours(std::string_view theirs) const;

 private:
  struct Compiled {
    std::regex expression;
    std::string replacement;
    KeyRule::Kind kind;
    std::vector<std::string> parts;
  };
  std::vector<Compiled> rules_;
};

struct NamedShape {
  std::string name;
  Shape shape;
};

/// The parameters of a model, in order.
[[nodiscard]] std::vector<NamedShape> parameters_of(const spec::LayerTable& table);

/// Rows [rows * index, rows * (index + 1)) of a tensor of the file, where our parameter has `rows`.
struct KeyPart {
  int64_t index = 0;
  int64_t count = 1;
};

/// Which tensor of a file is which parameter, and what does not fit.
struct KeyMatch {
  std::map<std::string, std::string, std::less<>> key_of;  ///< by our name, the file's key
  std::map<std::string, KeyPart, std::less<>> part_of;     ///< by our name, where a tensor is split
  std::vector<std::string> missing;                        ///< our names
  std::vector<std::string> unexpected;                     ///< keys of the file
  std::vector<std::string> wrong_shape;                    ///< "name: expected [2], got [3] as 'key'"
  std::vector<std::string> ambiguous;  ///< "name: 'key' and 'key'": two tensors for one parameter

  [[nodiscard]] bool complete() const {
    return missing.empty() && unexpected.empty() && wrong_shape.empty() && ambiguous.empty();
  }
  /// What does not fit, a few names of each kind; empty if complete.
  [[nodiscard]] std::string report() const;
};

/// Shapes are equal if they are so without extents of 1 at the end (a convolution of one pixel is a linear
/// layer).
[[nodiscard]] KeyMatch match_keys(const KeyTable& table, std::span<const NamedShape> wanted,
                                  std::span<const NamedShape> found);

}  // namespace chiliad::weights
