#include "chiliad/topology/rank_binder.h"

#include "chiliad/base/error.h"
#include "chiliad/base/log.h"

namespace chiliad::topology {

RankBinder::RankBinder(int rank, const BindingRequest& request) {
  try {
    topology_ = Topology::of_this_machine();
    const auto plan = plan_binding(topology_->machine(), request);
    report_ = plan.line(rank);
    if (!plan.binds()) return;
    const RankBinding& own = plan.ranks.at(static_cast<size_t>(rank));
    topology_->bind_thread(own.compute);
    if (topology_->machine().numa_nodes.size() > 1) topology_->prefer_memory_of(own.numa_node);
    binding_ = own;
  } catch (const Unavailable& error) {  // some containers forbid it; a run is as right without
    report_ = fmt::format("not bound to cores: {}", error.what());
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
