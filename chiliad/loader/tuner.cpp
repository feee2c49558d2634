#include "chiliad/loader/tuner.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace chiliad::loader {
namespace {

constexpr int64_t kStepsPerInterval = 4;
constexpr Nanoseconds kShortestInterval = std::chrono::milliseconds(100);
constexpr double kWaitsTooLong = 0.005;  // half of what is promised
constexpr double kWaitsNotAtAll = 0.001;
constexpr double kBusy = 0.85;
constexpr double kMostlyBlocked = 0.5;
constexpr double kFewerWouldDo = 0.6;
constexpr int64_t kCalmIntervals = 8;
constexpr int64_t kRemembered = 200;  // intervals

}  // namespace

Tuner::Tuner(const TunerLimits& limits, const TunerSettings& start) : limits_(limits), settings_(start) {
  limits_.max_threads = std::max(limits_.max_threads, start.threads);
  limits_.max_depth = std::max(limits_.max_depth, start.depth);
}

bool Tuner::add_step(const TunerInput& input) {
  if (!std::exchange(begun_, true)) {
    last_ = input;
    return false;
  }
  const Nanoseconds time = input.now - last_.now;
  if (++steps_ < kStepsPerInterval || time < kShortestInterval) return false;
  const double seconds = to_seconds(time);
  const double wait = to_seconds(input.waited - last_.waited) / seconds;
  const double load = to_seconds(input.busy - last_.busy) / seconds;  // threads' worth
  const double blocked = to_seconds(input.blocked_by_bytes - last_.blocked_by_bytes) / seconds;
  last_ = input;
  steps_ = 0;
  if (known_ > 0 && --known_ == 0) too_few_ = 0;
  const int64_t changes = num_changes_;
  if (wait > kWaitsTooLong) {
    calm_ = 0;
    raise(load, blocked);
  } else {
    calm_ = wait < kWaitsNotAtAll ? calm_ + 1 : 0;
    if (calm_ >= kCalmIntervals) lower(load);
  }
  return num_changes_ != changes;
}

void Tuner::raise(double load, double blocked) {
  TunerSettings to = settings_;
  const bool busy = load > kBusy * settings_.threads;
  const bool may_add = settings_.threads < limits_.max_threads;
  const bool may_deepen = settings_.depth < limits_.max_depth && blocked < kMostlyBlocked;
  if (may_deepen && !(busy && may_add)) {
    to.depth = std::min(2 * settings_.depth, limits_.max_depth);
  } else if (may_add && (busy || blocked < kMostlyBlocked)) {
    too_few_ = std::max(too_few_, settings_.threads);
    known_ = kRemembered;
    to.threads = std::min(settings_.threads + std::max(1, settings_.threads / 2), limits_.max_threads);
  }
  change(to);
}

void Tuner::lower(double load) {
  calm_ = 0;
  const int fewer = settings_.threads - 1;
  if (fewer <= too_few_ || fewer < 1 || load > kFewerWouldDo * fewer) return;
  change({fewer, settings_.depth});
}

void Tuner::change(const TunerSettings& to) {
  if (to == settings_) return;
  settings_ = to;
  ++num_changes_;
}

}  // namespace chiliad::loader
