#include "chiliad/topology/topology.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "chiliad/base/error.h"
#include "chiliad/topology/rank_binder.h"

namespace chiliad::topology {
namespace {

TEST(CpuListTest, IsWrittenInRanges) {
  EXPECT_EQ(to_string({0, 1, 2, 5, 7, 8}), "0-2,5,7-8");
  EXPECT_EQ(to_string(CpuList{}), "none");
}

TEST(TopologyTest, DescribesPackagesNodesCoresAndThreads) {
  const auto machine = Topology::synthetic("package:2 [numa(memory=2GiB)] core:2 pu:2").machine();
  EXPECT_EQ(machine.to_string(),
            "2 packages, 2 NUMA nodes, 4 cores, 8 hardware threads, 0 GPUs\n"
            "NUMA node 0: cpus 0-3, 2.0 GiB\n"
            "NUMA node 1: cpus 4-7, 2.0 GiB");
}

TEST(TopologyTest, KnowsThePackageOfANode) {
  const auto machine = Topology::synthetic("package:2 numa:2 core:1 pu:1").machine();
  ASSERT_EQ(machine.numa_nodes.size(), 4U);
  EXPECT_EQ(machine.numa_nodes[2].package, 1);
  EXPECT_EQ(machine.cores[3].package, 1);
}

TEST(TopologyTest, SeesOnlyAllowedCpus) {
  const auto machine = Topology::synthetic("package:2 core:4 pu:2", {9, 10}).machine();
  EXPECT_EQ(to_string(machine.cpus()), "9-10");
  EXPECT_EQ(machine.num_cores(), 2);
  EXPECT_EQ(machine.numa_nodes.size(), 1U);
}

TEST(TopologyTest, MachineWithoutCoresHasOneOfEveryHardwareThread) {
  EXPECT_EQ(Topology::synthetic("package:1 pu:3").machine().num_cores(), 3);
}

TEST(TopologyTest, ThisMachineHasTheCpusOfThisThread) {
  const auto topology = Topology::of_this_machine();
  EXPECT_EQ(topology.machine().cpus(), topology.thread_cpus());
}

TEST(TopologyTest, ThreadsInheritABinding) {
  const auto topology = Topology::of_this_machine();
  const CpuList last = {topology.machine().cpus().back()};
  // On a thread, so that the test's own stays as it is.
  std::async(std::launch::async, [&] {
    topology.bind_thread(last);
    EXPECT_EQ(std::async(std::launch::async, [&] { return topology.thread_cpus(); }).get(), last);
  }).get();
}

TEST(TopologyTest, BoundThreadSeesNoOtherCpus) {
  std::async(std::launch::async, [&] {
    const CpuList last = {Topology::of_this_machine().machine().cpus().back()};
    Topology::of_this_machine().bind_thread(last);
    EXPECT_EQ(Topology::of_this_machine().machine().cpus(), last);
  }).get();
}

TEST(TopologyTest, CpusThatDoNotExistAreRefused) {
  EXPECT_THROW(Topology::of_this_machine().bind_thread({100'000}), Unavailable);
}

TEST(TopologyTest, MemoryOfItsOwnNodeCanBePreferred) {
  std::async(std::launch::async, [] {
    const auto topology = Topology::of_this_machine();
    EXPECT_NO_THROW(topology.prefer_memory_of(topology.machine().numa_nodes.front().index));
  }).get();
}

TEST(RankBinderTest, ScopeLendsOtherCpusAndGivesThemBack) {
  std::async(std::launch::async, [] {
    const auto unbound = Topology::of_this_machine();
    auto topology = Topology::of_this_machine();
    const CpuList all = topology.machine().cpus();
    BindingPlan plan;
    plan.ranks.push_back(
        {topology.machine().numa_nodes.front().index, all, {all.front()}, all, {all.back()}});
    const RankBinder binder(std::move(topology), plan, 0);
    EXPECT_EQ(unbound.thread_cpus(), CpuList{all.front()});
    {
      const auto scope = binder.loading();
      EXPECT_EQ(unbound.thread_cpus(), CpuList{all.back()});
    }
    EXPECT_EQ(unbound.thread_cpus(), CpuList{all.front()});
  }).get();
}

TEST(RankBinderTest, MoreRanksThanCoresAreNotBound) {
  const auto topology = Topology::of_this_machine();
  const auto before = topology.thread_cpus();
  const RankBinder binder(0, {static_cast<int>(before.size()) + 1, 1, 1, 2, {}});
  const auto scope = binder.communication();
  EXPECT_EQ(topology.thread_cpus(), before);
  EXPECT_EQ(binder.report().rfind("not bound to cores: ", 0), 0U) << binder.report();
}

}  // namespace
}  // namespace chiliad::topology
