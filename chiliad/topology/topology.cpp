#include "chiliad/topology/topology.h"

#include <fmt/format.h>
#include <hwloc.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <tuple>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/topology/cpu_quota.h"

namespace chiliad::topology {
namespace {

/// Parts of hwloc that start drivers of GPUs (slow, and not for a process that has not chosen its GPU yet),
/// or that visit every core, which the kernel describes as well.
constexpr const char* kUnusedParts[] = {"cuda", "nvml", "opencl", "rsmi", "levelzero", "gl", "x86"};
constexpr unsigned kDisplayClass = 0x03;  // of PCI
constexpr unsigned kNvidia = 0x10de;
constexpr unsigned kAmd = 0x1002;
constexpr unsigned kServerVga = 0x0300;

/// A set of hwloc's.
class Bitmap {
 public:
  Bitmap() : bitmap_(hwloc_bitmap_alloc()) { CHILIAD_CHECK(bitmap_ != nullptr); }
  explicit Bitmap(const CpuList& cpus) : Bitmap() {
    for (const int cpu : cpus) hwloc_bitmap_set(bitmap_, static_cast<unsigned>(cpu));
  }
  ~Bitmap() { hwloc_bitmap_free(bitmap_); }
  Bitmap(const Bitmap&) = delete;
  Bitmap& operator=(const Bitmap&) = delete;
  [[nodiscard]] hwloc_bitmap_t get() const { return bitmap_; }

 private:
  hwloc_bitmap_t bitmap_;
};

CpuList to_list(hwloc_const_bitmap_t set) {
  CpuList cpus;
  if (hwloc_bitmap_weight(set) < 0) return cpus;  // infinite
  for (int cpu = hwloc_bitmap_first(set); cpu >= 0; cpu = hwloc_bitmap_next(set, cpu)) cpus.push_back(cpu);
  return cpus;
}

void expect(int result, const char* what) {
  if (result >= 0) return;
  throw Unavailable("binding", fmt::format("{}: {}. Set parallel.bind: none to go on without it", what,
                                           std::strerror(errno)));
}

int package_of(hwloc_topology_t topology, hwloc_obj_t object) {
  const auto* package = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_PACKAGE, object);
  return package == nullptr ? -1 : static_cast<int>(package->logical_index);
}

std::vector<Core> cores_of(hwloc_topology_t topology) {
  std::vector<Core> cores;
  // Some virtual machines have hardware threads alone.
  const auto type = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE) > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
  for (auto* core = hwloc_get_next_obj_by_type(topology, type, nullptr); core != nullptr;
       core = hwloc_get_next_obj_by_type(topology, type, core)) {
    const int node = core->nodeset == nullptr ? -1 : hwloc_bitmap_first(core->nodeset);
    cores.push_back({package_of(topology, core), std::max(node, 0), to_list(core->cpuset)});
  }
  std::stable_sort(cores.begin(), cores.end(),
                   [](const Core& a, const Core& b) { return a.numa_node < b.numa_node; });
  return cores;
}

std::vector<NumaNode> numa_nodes_of(hwloc_topology_t topology, const std::vector<Core>& cores) {
  std::vector<NumaNode> nodes;
  for (auto* node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, nullptr); node != nullptr;
       node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)) {
    const auto index = static_cast<int>(node->os_index);
    const auto is_near = [index](const Core& core) { return core.numa_node == index; };
    if (std::none_of(cores.begin(), cores.end(), is_near)) continue;
    nodes.push_back(
        {index, package_of(topology, node->parent), static_cast<int64_t>(node->attr->numanode.local_memory)});
  }
  std::sort(nodes.begin(), nodes.end(),
            [](const NumaNode& a, const NumaNode& b) { return a.index < b.index; });
  return nodes;
}

/// By their PCI class, so that no driver and no plugin of hwloc is needed.
std::vector<Gpu> gpus_of(hwloc_topology_t topology) {
  std::vector<Gpu> gpus;
  for (auto* device = hwloc_get_next_pcidev(topology, nullptr); device != nullptr;
       device = hwloc_get_next_pcidev(topology, device)) {
    const auto& pci = device->attr->pcidev;
    if (pci.class_id >> 8U != kDisplayClass) continue;
    if (pci.vendor_id != kNvidia && (pci.vendor_id != kAmd || pci.class_id == kServerVga)) continue;
    const auto* near = hwloc_get_non_io_ancestor_obj(topology, device);
    const int node = near == nullptr || near->nodeset == nullptr || hwloc_bitmap_weight(near->nodeset) != 1
                         ? -1
                         : hwloc_bitmap_first(near->nodeset);
    gpus.push_back({fmt::format("{:04x}:{:02x}:{:02x}.{:x}", pci.domain, pci.bus, pci.dev, pci.func), node});
  }
  std::sort(gpus.begin(), gpus.end(), [](const Gpu& a, const Gpu& b) { return a.bus_id < b.bus_id; });
  return gpus;
}

Machine describe(hwloc_topology_t topology) {
  Machine machine;
  machine.cores = cores_of(topology);
  machine.numa_nodes = numa_nodes_of(topology, machine.cores);
  machine.gpus = gpus_of(topology);
  machine.num_packages = std::max(1, hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PACKAGE));
  return machine;
}

}  // namespace

struct Topology::Handle {
  Handle() { expect(hwloc_topology_init(&topology), "hwloc cannot start"); }
  ~Handle() { hwloc_topology_destroy(topology); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  void load() const { expect(hwloc_topology_load(topology), "hwloc cannot read this machine"); }
  void restrict_to(hwloc_const_bitmap_t cpus) const {
    expect(hwloc_topology_restrict(topology, cpus, HWLOC_RESTRICT_FLAG_REMOVE_CPULESS),
           "hwloc cannot restrict itself to the allowed cpus");
  }

  hwloc_topology_t topology = nullptr;
};

Topology::Topology(std::unique_ptr<Handle> handle)
    : handle_(std::move(handle)), machine_(describe(handle_->topology)) {}
Topology::Topology(Topology&&) noexcept = default;
Topology& Topology::operator=(Topology&&) noexcept = default;
Topology::~Topology() = default;

Topology Topology::of_this_machine() {
  auto handle = std::make_unique<Handle>();
  hwloc_topology_set_io_types_filter(handle->topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
  for (const char* part : kUnusedParts)
    hwloc_topology_set_components(handle->topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, part);
  handle->load();  // without what the cpuset of a cgroup forbids
  const Bitmap allowed;
  expect(hwloc_get_cpubind(handle->topology, allowed.get(), HWLOC_CPUBIND_THREAD),
         "hwloc cannot read the affinity");
  handle->restrict_to(allowed.get());
  Topology topology(std::move(handle));
  topology.machine_.cpu_quota = read_cpu_quota("/");
  return topology;
}

Topology Topology::synthetic(const std::string& description, const CpuList& allowed) {
  auto handle = std::make_unique<Handle>();
  expect(hwloc_topology_set_synthetic(handle->topology, description.c_str()), "no such synthetic topology");
  handle->load();
  if (!allowed.empty()) handle->restrict_to(Bitmap(allowed).get());
  return Topology(std::move(handle));
}

void Topology::bind_thread(const CpuList& cpus) const {
  expect(hwloc_set_cpubind(handle_->topology, Bitmap(cpus).get(), HWLOC_CPUBIND_THREAD),
         "a thread cannot be bound");
}

CpuList Topology::thread_cpus() const {
  const Bitmap cpus;
  expect(hwloc_get_cpubind(handle_->topology, cpus.get(), HWLOC_CPUBIND_THREAD), "no affinity to be read");
  return to_list(cpus.get());
}

void Topology::prefer_memory_of(int numa_node) const {
  const Bitmap node(CpuList{numa_node});
  // Without STRICT: other nodes help out where this one is full.
  expect(hwloc_set_membind(handle_->topology, node.get(), HWLOC_MEMBIND_BIND,
                           HWLOC_MEMBIND_THREAD | HWLOC_MEMBIND_BYNODESET),
         "memory cannot be bound");
}

}  // namespace chiliad::topology
