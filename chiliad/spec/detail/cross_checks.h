#pragma once

#include <optional>
#include <string>

#include "chiliad/spec/run_file.h"

namespace chiliad::spec::detail {

/// A rule that joins several options, broken: the key to blame and what is wrong.
struct Conflict {
  std::string key;
  std::string message;
};
[[nodiscard]] std::optional<Conflict> find_conflict(const RunFile& file);

}  // namespace chiliad::spec::detail
