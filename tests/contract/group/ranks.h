#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <string>
#include <vector>

#include "chiliad/base/clock.h"
#include "chiliad/comm/group.h"
#include "chiliad/comm/meeting.h"

namespace chiliad::test {

/// A backend and a number of ranks to hold it against the contract.
struct Backend {
  std::string name;
  int ranks = 1;
};

/// Where the tensors of calls are: rank r of "nccl" has GPU r.
[[nodiscard]] c10::Device device_of(const Backend& backend, int rank);

/// Runs `body` once for every rank, each on its own thread with its own group of `backend` ("solo", "gloo",
/// "shm", "inproc" or "nccl", that one also with one rank; a fresh loopback port). Rethrows the exception of
/// the lowest rank that failed. `present` ranks take part in the body; the others connect, close their group
/// at once and count as lost.
void run_ranks(const Backend& backend, const std::function<void(comm::Group&)>& body,
               Nanoseconds timeout = std::chrono::seconds(60), int present = -1);

/// The same with each rank's place to make groups at ("gloo", "shm" or "inproc"): the body makes its groups,
/// finishes the meeting and closes the groups.
void run_meetings(const Backend& backend, const std::function<void(comm::Meeting&)>& body,
                  Nanoseconds timeout = std::chrono::seconds(60));

}  // namespace chiliad::test
