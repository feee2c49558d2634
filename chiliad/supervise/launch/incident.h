#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "chiliad/base/clock.h"
#include "chiliad/supervise/launch/job_machine.h"

namespace chiliad::supervise {

/// What is known of a job that failed.
struct Incident {
  JobMachine::Outcome outcome;
  std::vector<Position> positions;  ///< [rank], last seen
  int64_t last_committed = -1;      ///< step, -1: none in this job
  int64_t sealed = -1;              ///< step of the snapshot that was saved after the failure
};

/// Writes FOLDER/<UTC time>.json and returns its path. Throws Unavailable.
std::filesystem::path write_incident(const std::filesystem::path& folder, const Incident& incident,
                                     const Clock& clock);

}  // namespace chiliad::supervise
