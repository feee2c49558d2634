#include "chiliad/supervise/launch/incident.h"

#include <fmt/chrono.h>

#include <ctime>
#include <nlohmann/json.hpp>

#include "chiliad/base/json_text.h"
#include "chiliad/io/file.h"

namespace chiliad::supervise {

std::filesystem::path write_incident(const std::filesystem::path& folder, const Incident& incident,
                                     const Clock& clock) {
  const auto wall = static_cast<std::time_t>(to_seconds(clock.wall()));
  nlohmann::ordered_json page{{"version", 1},
                              {"time", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(wall))},
                              {"rank", incident.outcome.rank},
                              {"suspects", incident.outcome.suspects},
                              {"message", incident.outcome.message},
                              {"exit_code", incident.outcome.exit_code},
                              {"last_committed_step", incident.last_committed},
                              {"sealed_step", incident.sealed}};
  page["ranks"] = nlohmann::ordered_json::array();
  const Nanoseconds now = clock.now();
  for (size_t rank = 0; rank < incident.positions.size(); ++rank) {
    const auto& at = incident.positions[rank];
    page["ranks"].push_back(
        {{"rank", rank},
         {"step", at.step},
         {"phase", at.phase},
         {"slot", at.slot},
         {"instruction", at.instruction},
         {"operation", at.operation},
         {"layer", at.layer},
         {"program", at.program == 0 ? std::string() : fmt::format("{:016x}", at.program)},
         {"stopped", at.stopped},
         {"unchanged_s", at.changed == Nanoseconds(0) ? -1.0 : to_seconds(now - at.changed)}});
  }
  io::make_folders(folder);
  const auto stem = fmt::format("{:%Y%m%dT%H%M%SZ}", fmt::gmtime(wall));
  auto path = folder / (stem + ".json");
  for (int n = 1; std::filesystem::exists(path); ++n) path = folder / fmt::format("{}-{}.json", stem, n);
  io::write_atomic(path, json_text(page, 2) + "\n");
  return path;
}

}  // namespace chiliad::supervise
