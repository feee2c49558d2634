#pragma once

#include <filesystem>

namespace chiliad::topology {

/// CPUs' worth of time that the cgroups of this process allow, the least of them; 0: no limit, or none to be
/// read. Reads `root`/proc/self/cgroup and `root`/sys/fs/cgroup, of cgroup v1 and v2.
[[nodiscard]] double read_cpu_quota(const std::filesystem::path& root);

}  // namespace chiliad::topology
