#pragma once

#include <string_view>

namespace chiliad {

/// Whether the planted bug `name` is switched on by CHILIAD_PLANTED_BUG. Only in builds with CHILIAD_FAULTS;
/// the `mutants` tests prove with it that a safety test can fail.
#ifdef CHILIAD_FAULTS
[[nodiscard]] bool planted_bug(std::string_view name);
#else
[[nodiscard]] constexpr bool planted_bug(std::string_view) {
  return false;
}
#endif

}  // namespace chiliad
