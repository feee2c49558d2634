#include "chiliad/topology/cpu_quota.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temp_dir.h"

namespace chiliad::topology {
namespace {

void write(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

TEST(CpuQuotaTest, NoCgroupIsNoLimit) {
  const test::TempDir root;
  EXPECT_EQ(read_cpu_quota(root.path()), 0.0);
}

TEST(CpuQuotaTest, LeastLimitAlongThePathCounts) {
  const test::TempDir root;
  write(root.path() / "proc/self/cgroup", "0::/pods/one/main\n");
  write(root.path() / "sys/fs/cgroup/pods/cpu.max", "800000 100000\n");
  write(root.path() / "sys/fs/cgroup/pods/one/cpu.max", "250000 100000\n");
  write(root.path() / "sys/fs/cgroup/pods/one/main/cpu.max", "max 100000\n");
  EXPECT_EQ(read_cpu_quota(root.path()), 2.5);
}

TEST(CpuQuotaTest, FirstVersionIsRead) {
  const test::TempDir root;
  write(root.path() / "proc/self/cgroup", "4:memory:/m\n2:cpuacct,cpu:/jobs\n");
  write(root.path() / "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  write(root.path() / "sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  write(root.path() / "sys/fs/cgroup/cpu/jobs/cpu.cfs_quota_us", "150000\n");
  write(root.path() / "sys/fs/cgroup/cpu/jobs/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(read_cpu_quota(root.path()), 1.5);
}

TEST(CpuQuotaTest, DamagedFileIsNoLimit) {
  const test::TempDir root;
  write(root.path() / "proc/self/cgroup", "0::/\n::\n");
  write(root.path() / "sys/fs/cgroup/cpu.max", "much\n");
  EXPECT_EQ(read_cpu_quota(root.path()), 0.0);
}

}  // namespace
}  // namespace chiliad::topology
