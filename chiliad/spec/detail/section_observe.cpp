#include "chiliad/spec/detail/sections.h"

namespace chiliad::spec::detail {
namespace {

template <auto Member>
constexpr Access at = kAccess<&RunFile::observe, Member>;

}  // namespace

Section observe_section() {
  using O = ObserveOptions;
  using enum OnResume;
  return {
      "observe",
      "Logging.",
      {
          {"log_every", at<&O::log_every>, WholeRule{1, 1'000'000'000}, kFree,
           "steps between lines of metrics.jsonl and of the terminal"},
          {"data_wait_alarm_s", at<&O::data_wait_alarm_s>, NumberRule{0.0, 86400.0, true, false}, kFree,
           "a step that waits longer for its data is warned about, seconds"},
          {"data_wait_alarm", at<&O::data_wait_alarm>, NumberRule{0.0, 1.0, true, false}, kFree,
           "share of the time of 50 steps spent waiting for data that is warned about, once, with the "
           "bottleneck and what to change"},
          {"check_every", at<&O::check_every>, WholeRule{0, 1'000'000'000}, kFree,
           "steps between comparisons of parameters that ranks share; 0: at start and checkpoints only"},
          {"ledger", at<&O::ledger>, BoolRule{}, kFree,
           "write the digest of every step's items to ledger.jsonl"},
          {"tensorboard", at<&O::tensorboard>, BoolRule{}, kFree,
           "write the metrics as event files that TensorBoard opens, into tensorboard/ of the run directory"},
          {"peak_flops", at<&O::peak_flops>, NumberRule{0.0, 1e18, false, false}, kFree,
           "FLOP/s of one rank that mfu is a share of; 0: measured at the start of a job"},
          {"trace_from", at<&O::trace_from>, WholeRule{0, 1'000'000'000}, kFree,
           "first step that is traced, counted from 0"},
          {"trace_steps", at<&O::trace_steps>, WholeRule{0, 1000}, kFree,
           "steps that are traced: every instruction of every rank, into trace/ of the run directory, to be "
           "opened with ui.perfetto.dev or chrome://tracing; 0: none"},
      }};
}

}  // namespace chiliad::spec::detail
