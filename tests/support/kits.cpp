#include "tests/support/kits.h"

#include <cstdlib>

namespace chiliad::test {
namespace {

std::filesystem::path from_environment(const char* name, const char* fallback) {
  const char* value = std::getenv(name);
  if (value != nullptr && *value != '\0') return value;
  return std::filesystem::path(CHILIAD_TEST_DATA) / fallback;
}

}  // namespace

std::filesystem::path golden_kit() {
  const auto folder = from_environment("CHILIAD_GOLDEN", "golden");
  return std::filesystem::exists(folder / "data") ? folder / "data" : folder;
}

std::filesystem::path hard_files_kit() {
  return from_environment("CHILIAD_HARDFILES", "hardfiles");
}

}  // namespace chiliad::test
