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
  constexpr std::string_view kSurrogate = "\\udc";
  for (size_t at = text.find(kSurrogate); at != std::string::npos; at = text.find(kSurrogate, at + 1)) {
    const bool escaped = at > 0 && text[at - 1] == '\\';
    const std::string byte = std::string(kByteMark) + text.substr(at + kSurrogate.size(), 2) + ">";
    text.replace(escaped ? at - 1 : at, kSurrogate.size() + 2 + (escaped ? 1 : 0), byte);
  }
  return text;
}

}  // namespace chiliad::test
