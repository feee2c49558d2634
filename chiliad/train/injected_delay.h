#pragma once

#include "chiliad/observe/time_account.h"

namespace chiliad::train {

/// Sleeps CHILIAD_DELAY_MS milliseconds if CHILIAD_DELAY_ROW names this row of the time account; in builds
/// with CHILIAD_FAULTS only. The test of the time account proves with it that each phase is charged to its
/// row.
#ifdef CHILIAD_FAULTS
void injected_delay(observe::Row row);
#else
inline void injected_delay(observe::Row) {}
#endif

}  // namespace chiliad::train
