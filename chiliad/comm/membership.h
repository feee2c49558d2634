#pragma once

#include "chiliad/comm/meeting.h"

namespace chiliad::comm {

/// The place of `rank` in a requested group. Throws InternalError where it has none or the members are not
/// ascending.
[[nodiscard]] Membership membership_of(const GroupRequest& request, int rank);

}  // namespace chiliad::comm
