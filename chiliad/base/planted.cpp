#include "chiliad/base/planted.h"

#include <cstdlib>

namespace chiliad {
#ifdef CHILIAD_FAULTS
bool planted_bug(std::string_view name) {
  const char* active = std::getenv("CHILIAD_PLANTED_BUG");
  return active != nullptr && name == active;
}
#endif
}  // namespace chiliad
