#pragma once

#include <string>
#include <vector>

#include "chiliad/topology/machine.h"

namespace chiliad::topology {

/// What the ranks of a job have on this machine.
struct BindingRequest {
  int num_ranks = 1;
  int compute_threads = 1;        ///< of a rank
  int communication_threads = 0;  ///< of a rank; 0: its compute thread communicates (shared memory)
  int loader_threads = 0;         ///< of a rank
  std::vector<int> near;          ///< NUMA node of each rank's device, -1: any; empty: ranks have none
};

/// Where the threads of a rank run: cores of one NUMA node.
struct RankBinding {
  int numa_node = 0;
  CpuList cpus;               ///< all of the rank's
  CpuList compute;            ///< part of cpus, as the two below
  CpuList communication;      ///< a core that does not compute, where the rank has one to spare
  CpuList loading;            ///< apart from the two above, where the rank has enough cores
  bool has_own_cores = true;  ///< else the ranks of a NUMA node share its cores
};

struct BindingPlan {
  std::vector<RankBinding> ranks;  ///< empty: nothing is bound
  std::string refusal;             ///< why nothing is bound

  [[nodiscard]] bool binds() const { return !ranks.empty(); }
  /// "cpus 0-3 (NUMA node 0): compute 0-2, communication 3, loading 0-2"; or why there is nothing.
  [[nodiscard]] std::string line(int rank) const;
};

/// Shares the machine's cores among the ranks, neighbours beside each other. Binds only where that cannot
/// slow a rank: every compute thread has a core and ranks have cores to spare; without cores to spare ranks
/// are kept to a NUMA node, and not bound at all where there is one. Pure.
[[nodiscard]] BindingPlan plan_binding(const Machine& machine, const BindingRequest& request);

}  // namespace chiliad::topology
