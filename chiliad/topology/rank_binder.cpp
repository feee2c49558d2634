#include "chiliad/topology/rank_binder.h"

#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/base/log.h"

namespace chiliad::topology {

RankBinder::RankBinder(int rank, const BindingRequest& request) {
  try {
    topology_ = Topology::of_this_machine();
    follow(plan_binding(topology_->machine(), request), rank);
  } catch (const Unavailable& error) {  // some containers forbid it; a run is as right without
    report_ = fmt::format("not bound to cores: {}", error.what());
  }
}

RankBinder::RankBinder(Topology topology, const BindingPlan& plan, int rank)
    : topology_(std::move(topology)) {
  follow(plan, rank);
}

void RankBinder::follow(const BindingPlan& plan, int rank) {
  report_ = plan.line(rank);
  if (!plan.binds()) return;
  const RankBinding& own = plan.ranks.at(static_cast<size_t>(rank));
  topology_->bind_thread(own.compute);
  binding_ = own;
  bind_memory();
}

/// The kernel takes memory from the node of the thread that touches it first anyway, where it can.
void RankBinder::bind_memory() {
  if (topology_->machine().numa_nodes.size() < 2) return;
  try {
    topology_->prefer_memory_of(binding_->numa_node);
  } catch (const Unavailable&) {
    report_ += "; its memory is left to the kernel";
  }
}

void RankBinder::bind(const CpuList& cpus) const {
  try {
    topology_->bind_thread(cpus);
  } catch (const Unavailable& error) {
    log_warn("{}", error.what());
  }
}

RankBinder::Scope::Scope(const RankBinder& binder, const CpuList& cpus) : binder_(binder) {
  if (binder_.binding_.has_value()) binder_.bind(cpus);
}
RankBinder::Scope::~Scope() {
  if (binder_.binding_.has_value()) binder_.bind(binder_.binding_->compute);
}

RankBinder::Scope RankBinder::communication() const {
  return {*this, binding_.has_value() ? binding_->communication : CpuList{}};
}
RankBinder::Scope RankBinder::loading() const {
  return {*this, binding_.has_value() ? binding_->loading : CpuList{}};
}

}  // namespace chiliad::topology
