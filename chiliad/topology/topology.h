#pragma once

#include <memory>
#include <string>

#include "chiliad/topology/machine.h"

namespace chiliad::topology {

/// A machine as hwloc sees it: describes it and binds threads to it. Thread-safe but for moves.
class Topology {
 public:
  /// Of this machine: what the process may use (cgroup's cpuset, affinity). Throws Unavailable.
  [[nodiscard]] static Topology of_this_machine();
  /// Of a made-up machine, in hwloc's words, e.g. "package:2 core:4 pu:2"; `allowed`: cpus that the process
  /// may use, empty for all. Cannot be bound to. For tests.
  [[nodiscard]] static Topology synthetic(const std::string& description, const CpuList& allowed = {});
  Topology(Topology&&) noexcept;
  Topology& operator=(Topology&&) noexcept;
  ~Topology();

  [[nodiscard]] const Machine& machine() const { return machine_; }

  /// Binds the calling thread; threads that it starts inherit that. Throws Unavailable.
  void bind_thread(const CpuList& cpus) const;
  [[nodiscard]] CpuList thread_cpus() const;
  /// Memory that the calling thread, and threads that it starts, touch first comes from this node while it
  /// has some. Throws Unavailable.
  void prefer_memory_of(int numa_node) const;

 private:
  struct Handle;
  explicit Topology(std::unique_ptr<Handle> handle);
  std::unique_ptr<Handle> handle_;
  Machine machine_;
};

}  // namespace chiliad::topology
