#include "chiliad/index/columns.h"

namespace chiliad::index {

uint32_t language_code(std::string_view name) {
  if (name.size() > 4) return 0;
  uint32_t code = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    char c = name[i];
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c < 'a' || c > 'z') return 0;
    code |= static_cast<uint32_t>(c) << (8 * i);
  }
  return code;
}

std::string language_name(uint32_t code) {
  std::string name;
  for (; code != 0; code >>= 8) name.push_back(static_cast<char>(code & 0xFF));
  return name;
}

}  // namespace chiliad::index
