#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace chiliad::topology {

/// Numbers of hardware threads as the operating system counts them (those of taskset), ascending.
using CpuList = std::vector<int>;

/// "0-3,8"; "none" for an empty list.
[[nodiscard]] std::string to_string(const CpuList& cpus);

struct NumaNode {
  int index = 0;    ///< the operating system's number
  int package = 0;  ///< -1 where unknown
  int64_t memory_bytes = 0;
};

/// A physical core.
struct Core {
  int package = 0;    ///< -1 where unknown
  int numa_node = 0;  ///< index of the node whose memory is near
  CpuList cpus;       ///< its hardware threads
};

struct Gpu {
  std::string bus_id;  ///< "0000:1b:00.0"
  int numa_node = -1;  ///< -1 where unknown
};

/// What this process may use of a machine.
struct Machine {
  std::vector<NumaNode> numa_nodes;  ///< by index
  std::vector<Core> cores;           ///< neighbours share caches; cores of a NUMA node follow each other
  std::vector<Gpu> gpus;             ///< by bus_id
  int num_packages = 1;
  double cpu_quota = 0.0;  ///< CPUs' worth of time that a cgroup allows; 0: all

  [[nodiscard]] int num_cores() const { return static_cast<int>(cores.size()); }
  [[nodiscard]] CpuList cpus() const;
  [[nodiscard]] CpuList cpus_of(int numa_node) const;
  /// One line, and one more for each NUMA node.
  [[nodiscard]] std::string to_string() const;
};

}  // namespace chiliad::topology
