#pragma once

#include <optional>
#include <string>

#include "chiliad/topology/binding_plan.h"
#include "chiliad/topology/topology.h"

namespace chiliad::topology {

/// Binds the threads of one rank, by the thread that starts them: threads inherit its binding.
class RankBinder {
 public:
  /// Binds nothing.
  RankBinder() = default;
  /// Plans for all ranks of this machine, and binds the calling thread to what `rank` has for compute, its
  /// memory to the NUMA node. Where that cannot be done nothing is bound, and report() says why.
  RankBinder(int rank, const BindingRequest& request);
  /// The same by a plan for `topology`, which is this machine.
  RankBinder(Topology topology, const BindingPlan& plan, int rank);

  /// While it lives the calling thread is bound to other cpus of the rank.
  class Scope {
   public:
    Scope(const RankBinder& binder, const CpuList& cpus);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    const RankBinder& binder_;
  };
  /// For threads that communicate, e.g. those of a group that is made meanwhile.
  [[nodiscard]] Scope communication() const;
  /// For threads that load data or save snapshots.
  [[nodiscard]] Scope loading() const;

  /// One line for the log.
  [[nodiscard]] const std::string& report() const { return report_; }
  /// Nothing where nothing is bound.
  [[nodiscard]] const std::optional<RankBinding>& binding() const { return binding_; }

 private:
  void follow(const BindingPlan& plan, int rank);
  void bind(const CpuList& cpus) const;
  void bind_memory();

  std::optional<Topology> topology_;
  std::optional<RankBinding> binding_;
  std::string report_ = "not bound to cores";
};

}  // namespace chiliad::topology
