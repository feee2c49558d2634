#include "chiliad/observe/time_account.h"

#include <algorithm>
#include <utility>

namespace chiliad::observe {

const char* row_name(Row row) {
  constexpr std::array<const char*, kNumRows> kNames{"data_wait",  "host_to_device", "forward",
                                                     "backward",   "communication",  "optimizer",
                                                     "checkpoint", "evaluation"};
  return kNames[static_cast<size_t>(row)];
}

TimeAccount::TimeAccount(const Clock& clock) : clock_(clock), step_start_(clock.now()), last_(step_start_) {}

TimeAccount::Scope::Scope(TimeAccount& account, Row row) : account_(account), outer_(account.active_) {
  account_.charge();
  account_.active_ = static_cast<int>(row);
}

TimeAccount::Scope::~Scope() {
  account_.charge();
  account_.active_ = outer_;
}

void TimeAccount::charge() {
  const Nanoseconds now = clock_.now();
  if (active_ >= 0) seconds_[static_cast<size_t>(active_)] += to_seconds(now - last_);
  last_ = now;
}

TimeAccount::Report TimeAccount::close_step() {
  charge();
  Report report;
  report.wall = to_seconds(last_ - step_start_);
  report.seconds = std::exchange(seconds_, {});
  double charged = 0.0;
  for (const double part : report.seconds) charged += part;
  report.other = std::max(0.0, report.wall - charged);
  step_start_ = last_;
  return report;
}

}  // namespace chiliad::observe
