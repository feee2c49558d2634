#include "chiliad/topology/binding_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "chiliad/topology/topology.h"

namespace chiliad::topology {
namespace {

Machine machine_of(const char* description, const CpuList& allowed = {}) {
  return Topology::synthetic(description, allowed).machine();
}

BindingRequest request_of(int ranks, int compute, int communication = 0, int loading = 0) {
  return {ranks, compute, communication, loading, {}};
}

std::string lines_of(const BindingPlan& plan) {
  std::string text;
  for (size_t rank = 0; rank < plan.ranks.size(); ++rank) text += plan.line(static_cast<int>(rank)) + "\n";
  return text;
}

TEST(BindingPlanTest, OneCoreIsLeftAlone) {
  const auto plan = plan_binding(machine_of("core:1 pu:1"), request_of(1, 1, 0, 2));
  EXPECT_EQ(plan.line(0), "not bound to cores: one rank has the machine to itself");
}

TEST(BindingPlanTest, OneRankIsLeftAloneOnManyCores) {
  EXPECT_FALSE(plan_binding(machine_of("core:64 pu:1"), request_of(1, 8, 0, 2)).binds());
}

TEST(BindingPlanTest, OneRankStaysOnOneOfSeveralNumaNodes) {
  const auto plan = plan_binding(machine_of("package:2 [numa] core:8 pu:1"), request_of(1, 4, 0, 2));
  EXPECT_EQ(plan.line(0), "cpus 0-7 (NUMA node 0): compute 0-5, loading 6-7");
}

TEST(BindingPlanTest, TwoRanksOnTwoCoresAreLeftAlone) {
  const auto plan = plan_binding(machine_of("core:2 pu:1"), request_of(2, 1, 1, 2));
  EXPECT_EQ(plan.refusal, "there are no cores to set apart");
}

TEST(BindingPlanTest, MoreRanksThanCoresAreLeftAlone) {
  const auto plan = plan_binding(machine_of("core:2 pu:2"), request_of(4, 1));
  EXPECT_FALSE(plan.binds());
  EXPECT_EQ(plan.refusal, "4 ranks of 1 compute thread want more cores than there are (2)");
}

TEST(BindingPlanTest, CommunicationHasACoreWhereOneIsToSpare) {
  const auto plan = plan_binding(machine_of("core:8 pu:1"), request_of(2, 2, 1, 2));
  EXPECT_EQ(lines_of(plan),
            "cpus 0-3 (NUMA node 0): compute 0-2, communication 3, loading 0-2\n"
            "cpus 4-7 (NUMA node 0): compute 4-6, communication 7, loading 4-6\n");
}

TEST(BindingPlanTest, LoadingHasCoresWhereThereAreEnough) {
  const auto plan = plan_binding(machine_of("core:16 pu:1"), request_of(2, 2, 1, 2));
  EXPECT_EQ(plan.line(1), "cpus 8-15 (NUMA node 0): compute 8-12, communication 15, loading 13-14");
}

TEST(BindingPlanTest, LoadingIsNeverKeptToComputingCores) {
  const auto plan = plan_binding(machine_of("core:4 pu:1"), request_of(2, 1, 1, 2));
  EXPECT_EQ(plan.line(0), "cpus 0-1 (NUMA node 0): compute 0, communication 1, loading 0-1");
}

TEST(BindingPlanTest, RanksWithoutCommunicationThreadsHaveNoCoreForThem) {
  const auto plan = plan_binding(machine_of("core:4 pu:1"), request_of(2, 1, 0, 2));
  EXPECT_EQ(plan.line(0), "cpus 0-1 (NUMA node 0), for all its threads");
}

TEST(BindingPlanTest, HardwareThreadsOfACoreStayTogether) {
  const auto plan = plan_binding(machine_of("core:4 pu:2"), request_of(2, 1, 1, 0));
  EXPECT_EQ(plan.line(1), "cpus 4-7 (NUMA node 0): compute 4-5, communication 6-7, loading 4-7");
}

TEST(BindingPlanTest, NeighboursShareANumaNode) {
  const auto plan = plan_binding(machine_of("package:2 [numa] core:4 pu:1"), request_of(4, 1, 0, 1));
  std::vector<int> nodes;
  for (const auto& rank : plan.ranks) nodes.push_back(rank.numa_node);
  EXPECT_EQ(nodes, (std::vector<int>{0, 0, 1, 1}));
}

TEST(BindingPlanTest, UnevenRanksAreSpreadOverNodes) {
  const auto plan = plan_binding(machine_of("package:2 [numa] core:4 pu:1"), request_of(3, 1));
  EXPECT_EQ(lines_of(plan),
            "cpus 0-1 (NUMA node 0), for all its threads\n"
            "cpus 2-3 (NUMA node 0), for all its threads\n"
            "cpus 4-7 (NUMA node 1), for all its threads\n");
}

TEST(BindingPlanTest, WithoutCoresToSpareRanksShareTheirNumaNode) {
  const auto plan = plan_binding(machine_of("package:2 [numa] core:2 pu:1"), request_of(4, 1, 1, 2));
  EXPECT_EQ(plan.line(3), "cpus 2-3 (NUMA node 1), shared with the other ranks of that node");
}

TEST(BindingPlanTest, ARankWiderThanANumaNodeIsLeftAlone) {
  const auto plan = plan_binding(machine_of("package:2 [numa] core:4 pu:1"), request_of(1, 6));
  EXPECT_EQ(plan.refusal, "1 rank of 6 compute threads do not fit into cores of one NUMA node each");
}

TEST(BindingPlanTest, RanksAreNearTheirDevices) {
  BindingRequest request = request_of(8, 2, 1, 1);
  request.near = {1, 1, 1, 1, 0, 0, 0, 0};
  const auto plan = plan_binding(machine_of("package:2 [numa] core:16 pu:1"), request);
  EXPECT_EQ(plan.line(0), "cpus 16-19 (NUMA node 1): compute 16-17, communication 19, loading 18");
  EXPECT_EQ(plan.line(7), "cpus 12-15 (NUMA node 0): compute 12-13, communication 15, loading 14");
}

TEST(BindingPlanTest, DevicesThatCrowdANumaNodeAreSaid) {
  BindingRequest request = request_of(3, 2);
  request.near = {0, 0, 0};
  const auto plan = plan_binding(machine_of("package:2 [numa] core:4 pu:1"), request);
  EXPECT_EQ(plan.refusal,
            "3 ranks of 2 compute threads do not fit into cores of one NUMA node each, near their devices");
}

TEST(BindingPlanTest, OnlyAllowedCpusAreUsed) {
  const auto plan = plan_binding(machine_of("package:2 [numa] core:8 pu:1", {2, 3, 4, 5, 8, 9, 10, 11}),
                                 request_of(2, 2, 1, 1));
  EXPECT_EQ(lines_of(plan),
            "cpus 2-5 (NUMA node 0): compute 2-3, communication 5, loading 4\n"
            "cpus 8-11 (NUMA node 1): compute 8-9, communication 11, loading 10\n");
}

TEST(BindingPlanTest, SharedCpuTimeIsLeftAlone) {
  Machine machine = machine_of("core:64 pu:1");
  machine.cpu_quota = 4.0;
  EXPECT_EQ(plan_binding(machine, request_of(2, 1)).refusal,
            "a cgroup allows 4.0 CPUs' worth of time on 64 cpus, which others may use");
}

// No two ranks on one core, whatever the machine and the job.
TEST(BindingPlanTest, NoCpuComputesForTwoRanks) {
  for (const char* description :
       {"core:3 pu:1", "package:2 [numa] core:5 pu:2", "package:4 [numa] core:3 pu:1"}) {
    const Machine machine = machine_of(description);
    for (int ranks = 1; ranks <= 12; ++ranks) {
      const auto plan = plan_binding(machine, request_of(ranks, 1, 1, 2));
      CpuList used;
      for (const auto& rank : plan.ranks) {
        if (rank.has_own_cores) used.insert(used.end(), rank.cpus.begin(), rank.cpus.end());
      }
      std::sort(used.begin(), used.end());
      EXPECT_EQ(std::adjacent_find(used.begin(), used.end()), used.end()) << description << ", " << ranks;
    }
  }
}

}  // namespace
}  // namespace chiliad::topology
