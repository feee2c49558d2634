#pragma once

#include <cstdint>
#include <string>

namespace chiliad::spec {

/// Section `observe`.
struct ObserveOptions {
  int64_t log_every = 10;          ///< steps between lines of metrics.jsonl and the terminal
  double data_wait_alarm_s = 1.0;  ///< a step that waits longer for data is warned about
  double data_wait_alarm = 0.05;   ///< share of the time waited for data that is warned about, once
  int64_t check_every = 1000;      ///< steps between comparisons of parameters that ranks have alike; 0: none
  bool ledger = false;             ///< write the digest of every step's items to ledger.jsonl
  bool tensorboard = true;         ///< write event files for TensorBoard
  double peak_flops = 0.0;         ///< FLOP/s of one rank that mfu is a share of; 0: measured at the start
  int64_t trace_from = 0;          ///< first step to trace
  int64_t trace_steps = 0;         ///< steps to trace; 0: none
};

/// Section `supervise`.
struct SuperviseOptions {
  double hang_timeout_s = 300.0;  ///< no progress for that long: the job ends with the stuck rank named
  double exit_grace_s = 2.0;      ///< from the first failure of a worker to SIGKILL of the others
};

}  // namespace chiliad::spec
