#include "chiliad/loader/wait_alarm.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace chiliad::loader {
namespace {

constexpr double kBusy = 0.75;
constexpr double kMostly = 0.5;

double phase_seconds(const LoaderStats& before, const LoaderStats& after, ItemPhase phase) {
  const auto i = static_cast<size_t>(phase);
  return after.phase_seconds[i] - before.phase_seconds[i];
}

std::string what_to_do(Bottleneck bottleneck, const LoaderStats& stats) {
  switch (bottleneck) {
    case Bottleneck::kReading:
      return fmt::format(
          "{} threads mostly wait for storage: raise data.loader_threads_max, or bring the data "
          "nearer (`chiliad data build`)",
          stats.threads);
    case Bottleneck::kDecoding:
      return fmt::format(
          "{} threads are busy decoding: raise data.loader_threads_max, set data.dct_margin: 1, "
          "or store smaller pictures (`chiliad data build`)",
          stats.threads);
    case Bottleneck::kWords:
      return fmt::format("{} threads are busy with captions or documents: raise data.loader_threads_max",
                         stats.threads);
    case Bottleneck::kPlanning:
      return "choosing the items takes too long: lower data.shape_clusters or data.window_blocks";
    case Bottleneck::kMemory:
      return "what may lie ready is used up: raise data.prefetch_bytes";
    case Bottleneck::kAhead:
      return fmt::format(
          "steps take unevenly long to load and {} are loaded ahead: raise data.prefetch_steps",
          stats.prefetch_steps);
    case Bottleneck::kNone:
      break;
  }
  return "";
}

}  // namespace

const char* bottleneck_name(Bottleneck bottleneck) {
  switch (bottleneck) {
    case Bottleneck::kReading:
      return "reading";
    case Bottleneck::kDecoding:
      return "decoding";
    case Bottleneck::kWords:
      return "words";
    case Bottleneck::kPlanning:
      return "planning";
    case Bottleneck::kMemory:
      return "memory budget";
    case Bottleneck::kAhead:
      return "steps ahead";
    case Bottleneck::kNone:
      break;
  }
  return "none";
}

Bottleneck find_bottleneck(const LoaderStats& before, const LoaderStats& after, double seconds) {
  if (seconds <= 0.0) return Bottleneck::kNone;
  const double reading = phase_seconds(before, after, ItemPhase::kReading);
  const double decoding = phase_seconds(before, after, ItemPhase::kDecoding);
  const double words = phase_seconds(before, after, ItemPhase::kWords);
  if (reading + decoding + words > kBusy * seconds * std::max(1, after.threads)) {
    if (reading >= std::max(decoding, words)) return Bottleneck::kReading;
    return decoding >= words ? Bottleneck::kDecoding : Bottleneck::kWords;
  }
  if (after.plan_seconds - before.plan_seconds > kMostly * seconds) return Bottleneck::kPlanning;
  if (after.blocked_seconds - before.blocked_seconds > kMostly * seconds) return Bottleneck::kMemory;
  return Bottleneck::kAhead;
}

std::optional<std::string> WaitAlarm::add_step(double seconds, double waited, const LoaderStats& stats) {
  if (!has_before_) {
    before_ = stats;
    has_before_ = true;
    return std::nullopt;
  }
  seconds_ += seconds;
  waited_ += waited;
  if (++steps_ < num_steps_) return std::nullopt;
  const double found = seconds_ > 0.0 ? waited_ / seconds_ : 0.0;
  const Bottleneck bottleneck = find_bottleneck(before_, stats, seconds_);
  before_ = stats;
  steps_ = 0;
  seconds_ = waited_ = 0.0;
  if (found <= share_) {
    if (found < share_ / 2) told_ = false;
    return std::nullopt;
  }
  if (std::exchange(told_, true)) return std::nullopt;
  ++num_alarms_;
  return fmt::format(
      "waited for data for {:.1f} % of the last {} steps (alarm at {:.1f} %); bottleneck: {}. {}",
      100.0 * found, num_steps_, 100.0 * share_, bottleneck_name(bottleneck), what_to_do(bottleneck, stats));
}

}  // namespace chiliad::loader
