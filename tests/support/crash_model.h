#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace chiliad::test {

/// What a row of crashes showed. A violation names the operation before which the process stopped, and what
/// was wrong.
struct CrashReport {
  int num_cases = 0;
  std::vector<std::string> violations;
};

/// Saves step 2 beside a committed step 1 and prunes to one checkpoint; does so again and again, each time
/// stopping before the next file operation (n = 1, 2, ... until there is no n-th), as a killed process would.
/// After each stop the newest good checkpoint must be all of step 1 or all of step 2 (2 once `commit` has
/// returned), and every COMMIT must stand for a checkpoint that verifies. With `power_loss_seed` the machine
/// stops as well: what was not fsynced is lost, halved or zeroed, and renames, new folders and removals in
/// folders that were not synced may be undone, as that seed says.
[[nodiscard]] CrashReport crash_at_every_operation(std::optional<uint64_t> power_loss_seed);

}  // namespace chiliad::test
