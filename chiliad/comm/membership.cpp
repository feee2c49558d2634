#include "chiliad/comm/membership.h"

#include <algorithm>

#include "chiliad/base/error.h"

namespace chiliad::comm {

Membership membership_of(const GroupRequest& request, int rank) {
  const auto& members = request.members;
  CHILIAD_CHECK(std::adjacent_find(members.begin(), members.end(), std::greater_equal<>()) == members.end());
  const auto place = std::find(members.begin(), members.end(), rank);
  CHILIAD_CHECK(place != members.end(), "rank {} is not in group {}", rank, request.name);
  return {request.name, members, static_cast<int>(place - members.begin())};
}

}  // namespace chiliad::comm
