#include "tests/support/kits.h"

#include <cstdlib>

#include "chiliad/io/file.h"

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

std::string hard_files_index() {
  std::string text = io::read_text(hard_files_kit() / "index.json", 64 << 20);
  for (size_t at = text.find("\\udc"); at != std::string::npos; at = text.find("\\udc", at)) {
    text[at] = ' ';
    if (text[at - 1] == '\\') text[at - 1] = ' ';
  }
  return text;
}

}  // namespace chiliad::test
