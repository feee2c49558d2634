#include "chiliad/topology/cpu_quota.h"

#include <fstream>
#include <sstream>
#include <string>

namespace chiliad::topology {
namespace {

namespace fs = std::filesystem;

/// "200000 100000" or "max 100000"; v1 has the two numbers in two files.
double quota_of(const std::string& quota, const std::string& period) {
  try {
    const double share = std::stod(quota) / std::stod(period);
    return share > 0.0 ? share : 0.0;  // v1 says -1 for no limit
  } catch (const std::exception&) {
    return 0.0;
  }
}

std::string first_word(const fs::path& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

double quota_in(const fs::path& folder, bool second_version) {
  if (!second_version) {
    return quota_of(first_word(folder / "cpu.cfs_quota_us"), first_word(folder / "cpu.cfs_period_us"));
  }
  std::ifstream file(folder / "cpu.max");
  std::string quota;
  std::string period;
  file >> quota >> period;
  return quota_of(quota, period);
}

/// The least limit of a cgroup and those above it.
double least_quota(const fs::path& mount, const fs::path& cgroup, bool second_version) {
  double least = 0.0;
  fs::path folder = mount;
  const auto look = [&] {
    const double quota = quota_in(folder, second_version);
    if (quota > 0.0 && (least == 0.0 || quota < least)) least = quota;
  };
  look();
  for (const auto& part : cgroup.relative_path()) {
    folder /= part;
    look();
  }
  return least;
}

bool names_cpu(const std::string& controllers) {
  std::istringstream stream(controllers);
  for (std::string one; std::getline(stream, one, ',');) {
    if (one == "cpu") return true;
  }
  return false;
}

}  // namespace

double read_cpu_quota(const fs::path& root) {
  double least = 0.0;
  std::ifstream list(root / "proc/self/cgroup");
  for (std::string line; std::getline(list, line);) {  // "number:controllers:path"
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool second_version = controllers.empty();
    if (!second_version && !names_cpu(controllers)) continue;
    const fs::path mount = root / "sys/fs/cgroup" / (second_version ? "" : "cpu");
    const double quota = least_quota(mount, line.substr(second + 1), second_version);
    if (quota > 0.0 && (least == 0.0 || quota < least)) least = quota;
  }
  return least;
}

}  // namespace chiliad::topology
