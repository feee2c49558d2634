#include "chiliad/topology/machine.h"

#include <fmt/format.h>

#include <algorithm>

#include "chiliad/base/units.h"

namespace chiliad::topology {
namespace {

std::string counted(size_t count, const char* thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

}  // namespace

std::string to_string(const CpuList& cpus) {
  if (cpus.empty()) return "none";
  std::string text;
  for (size_t begin = 0; begin < cpus.size();) {
    size_t end = begin + 1;
    while (end < cpus.size() && cpus[end] == cpus[end - 1] + 1) ++end;
    if (!text.empty()) text += ',';
    text += std::to_string(cpus[begin]);
    if (end - begin > 1) text += fmt::format("-{}", cpus[end - 1]);
    begin = end;
  }
  return text;
}

CpuList Machine::cpus() const {
  CpuList all;
  for (const Core& core : cores) all.insert(all.end(), core.cpus.begin(), core.cpus.end());
  std::sort(all.begin(), all.end());
  return all;
}

CpuList Machine::cpus_of(int numa_node) const {
  CpuList all;
  for (const Core& core : cores) {
    if (core.numa_node == numa_node) all.insert(all.end(), core.cpus.begin(), core.cpus.end());
  }
  std::sort(all.begin(), all.end());
  return all;
}

std::string Machine::to_string() const {
  std::string text = fmt::format("{}, {}, {}, {}, {}", counted(static_cast<size_t>(num_packages), "package"),
                                 counted(numa_nodes.size(), "NUMA node"), counted(cores.size(), "core"),
                                 counted(cpus().size(), "hardware thread"), counted(gpus.size(), "GPU"));
  if (cpu_quota > 0.0) text += fmt::format("; a cgroup allows {:.1f} CPUs' worth of time", cpu_quota);
  for (const NumaNode& node : numa_nodes) {
    text += fmt::format("\nNUMA node {}: cpus {}, {}", node.index, topology::to_string(cpus_of(node.index)),
                        format_bytes(node.memory_bytes));
    for (const Gpu& gpu : gpus) {
      if (gpu.numa_node == node.index) text += fmt::format(", GPU {}", gpu.bus_id);
    }
  }
  return text;
}

}  // namespace chiliad::topology
