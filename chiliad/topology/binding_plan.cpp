#include "chiliad/topology/binding_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "chiliad/base/error.h"

namespace chiliad::topology {
namespace {

/// Cores [begin, end) of a machine, all of one NUMA node, and how many ranks they are for.
struct NodeShare {
  int numa_node = 0;
  int begin = 0;
  int end = 0;
  int num_ranks = 0;
  [[nodiscard]] int num_cores() const { return end - begin; }
};

std::string threads_of(const BindingRequest& request) {
  return fmt::format("{} rank{} of {} compute thread{}", request.num_ranks, request.num_ranks == 1 ? "" : "s",
                     request.compute_threads, request.compute_threads == 1 ? "" : "s");
}

std::vector<NodeShare> nodes_of(const Machine& machine) {
  std::vector<NodeShare> nodes;
  for (int i = 0; i < machine.num_cores(); ++i) {
    const int node = machine.cores[static_cast<size_t>(i)].numa_node;
    if (nodes.empty() || nodes.back().numa_node != node) nodes.push_back({node, i, i, 0});
    nodes.back().end = i + 1;
  }
  return nodes;
}

/// The node that has most cores left for one more rank; null where none has enough.
NodeShare* roomiest(std::vector<NodeShare>& nodes, int compute_threads) {
  NodeShare* best = nullptr;
  for (NodeShare& node : nodes) {
    if (node.num_cores() < (node.num_ranks + 1) * compute_threads) continue;
    // node.cores / (node.ranks + 1) > best.cores / (best.ranks + 1), in whole numbers
    if (best == nullptr ||
        node.num_cores() * (best->num_ranks + 1) > best->num_cores() * (node.num_ranks + 1)) {
      best = &node;
    }
  }
  return best;
}

NodeShare* near_device(std::vector<NodeShare>& nodes, int numa_node, int compute_threads) {
  for (NodeShare& node : nodes) {
    if (node.numa_node != numa_node) continue;
    return node.num_cores() < (node.num_ranks + 1) * compute_threads ? nullptr : &node;
  }
  return nullptr;
}

/// The node of every rank; nothing where the ranks do not fit.
std::optional<std::vector<size_t>> place_ranks(std::vector<NodeShare>& nodes, const BindingRequest& request) {
  std::vector<size_t> node_of;
  for (int rank = 0; rank < request.num_ranks; ++rank) {
    const int device = request.near.empty() ? -1 : request.near[static_cast<size_t>(rank)];
    NodeShare* node = device >= 0 ? near_device(nodes, device, request.compute_threads)
                                  : roomiest(nodes, request.compute_threads);
    if (node == nullptr) return std::nullopt;
    ++node->num_ranks;
    node_of.push_back(static_cast<size_t>(node - nodes.data()));
  }
  if (request.near.empty()) std::sort(node_of.begin(), node_of.end());  // neighbours share a node
  return node_of;
}

CpuList cpus_of(const Machine& machine, int begin, int end) {
  CpuList cpus;
  for (int i = begin; i < end; ++i) {
    const CpuList& core = machine.cores[static_cast<size_t>(i)].cpus;
    cpus.insert(cpus.end(), core.begin(), core.end());
  }
  std::sort(cpus.begin(), cpus.end());
  return cpus;
}

RankBinding bind_to_node(const Machine& machine, const NodeShare& node) {
  const CpuList all = cpus_of(machine, node.begin, node.end);
  return {node.numa_node, all, all, all, all, node.num_ranks == 1};
}

/// The rank has cores [begin, end), more than it has compute threads.
RankBinding bind_to_cores(const Machine& machine, const BindingRequest& request, int begin, int end) {
  RankBinding rank;
  rank.numa_node = machine.cores[static_cast<size_t>(begin)].numa_node;
  rank.cpus = cpus_of(machine, begin, end);
  const int rest = request.communication_threads > 0 ? end - 1 : end;
  rank.communication = rest < end ? cpus_of(machine, rest, end) : rank.cpus;
  rank.compute = cpus_of(machine, begin, rest);
  const int spare = rest - begin - request.compute_threads;
  if (request.loader_threads > 0 && spare >= request.loader_threads) {
    const int first_loading = rest - request.loader_threads;
    rank.compute = cpus_of(machine, begin, first_loading);
    rank.loading = cpus_of(machine, first_loading, rest);
  } else {
    rank.loading = spare > 0 ? rank.compute : rank.cpus;  // never on computing cores alone
  }
  return rank;
}

BindingPlan refuse(std::string why) {
  return {{}, std::move(why)};
}

}  // namespace

std::string BindingPlan::line(int rank) const {
  if (!binds()) return "not bound to cores: " + refusal;
  const RankBinding& own = ranks.at(static_cast<size_t>(rank));
  std::string text = fmt::format("cpus {} (NUMA node {})", to_string(own.cpus), own.numa_node);
  if (!own.has_own_cores) return text + ", shared with the other ranks of that node";
  if (own.compute == own.cpus && own.loading == own.cpus) return text + ", for all its threads";
  text += fmt::format(": compute {}", to_string(own.compute));
  if (own.communication != own.cpus) text += fmt::format(", communication {}", to_string(own.communication));
  return text + fmt::format(", loading {}", to_string(own.loading));
}

BindingPlan plan_binding(const Machine& machine, const BindingRequest& request) {
  CHILIAD_CHECK(request.num_ranks > 0 && request.compute_threads > 0);
  CHILIAD_CHECK(request.near.empty() || static_cast<int>(request.near.size()) == request.num_ranks);
  if (machine.cpu_quota > 0.0 && machine.cpu_quota < static_cast<double>(machine.cpus().size())) {
    return refuse(fmt::format("a cgroup allows {:.1f} CPUs' worth of time on {} cpus, which others may use",
                              machine.cpu_quota, machine.cpus().size()));
  }
  if (request.num_ranks > machine.num_cores() / request.compute_threads) {
    return refuse(
        fmt::format("{} want more cores than there are ({})", threads_of(request), machine.num_cores()));
  }
  auto nodes = nodes_of(machine);
  if (request.num_ranks == 1 && nodes.size() == 1) return refuse("one rank has the machine to itself");
  const auto node_of = place_ranks(nodes, request);
  if (!node_of.has_value()) {
    return refuse(fmt::format("{} do not fit into cores of one NUMA node each{}", threads_of(request),
                              request.near.empty() ? "" : ", near their devices"));
  }
  const bool to_spare = std::all_of(nodes.begin(), nodes.end(), [&](const NodeShare& node) {
    return node.num_cores() >= node.num_ranks * (request.compute_threads + 1);
  });
  BindingPlan plan;
  std::vector<int> placed(nodes.size(), 0);
  for (const size_t index : *node_of) {
    const NodeShare& node = nodes[index];
    const int position = placed[index]++;
    const auto border = [&](int rank) { return node.begin + rank * node.num_cores() / node.num_ranks; };
    plan.ranks.push_back(to_spare ? bind_to_cores(machine, request, border(position), border(position + 1))
                                  : bind_to_node(machine, node));
  }
  const auto everywhere = machine.cpus();
  const bool free = std::all_of(plan.ranks.begin(), plan.ranks.end(), [&](const RankBinding& rank) {
    return rank.compute == everywhere && rank.loading == everywhere && rank.communication == everywhere;
  });
  if (free) return refuse("there are no cores to set apart");
  return plan;
}

}  // namespace chiliad::topology
