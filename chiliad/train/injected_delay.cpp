#include "chiliad/train/injected_delay.h"

#include <chrono>
#include <cstdlib>
#include <string_view>
#include <thread>

namespace chiliad::train {
#ifdef CHILIAD_FAULTS
void injected_delay(observe::Row row) {
  static const char* const name = std::getenv("CHILIAD_DELAY_ROW");
  static const char* const duration = std::getenv("CHILIAD_DELAY_MS");
  if (name == nullptr || duration == nullptr || std::string_view(name) != observe::row_name(row)) return;
  std::this_thread::sleep_for(std::chrono::milliseconds(std::atoi(duration)));
}
#endif
}  // namespace chiliad::train
