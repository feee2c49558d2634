#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chiliad/base/clock.h"

namespace chiliad::supervise {

/// Where a worker was when it was last seen, from its progress page.
struct Position {
  int64_t step = 0;
  std::string phase = "start";
  int slot = 0;
  int instruction = 0;     ///< index in the program; below 0: between steps
  Nanoseconds changed{0};  ///< steady clock; 0: never
  std::string operation;   ///< name of the instruction, or empty
  int layer = -1;          ///< of the instruction, or -1
  uint64_t program = 0;    ///< what the step runs, alike on all ranks; 0: unknown
  bool stopped = false;    ///< by a signal: the process does not run
};

/// "step 7, backward of layer 5, slot 0 (instruction 31 of program 1f2e3d4c5b6a7988)".
[[nodiscard]] std::string describe(const Position& position);

/// Why ranks that wait for each other do not get on.
struct Stall {
  std::vector<int> odd;  ///< ranks to look at first, ascending; empty where all are alike
  std::string text;      ///< who is odd and how, and where the others are
};

/// Compares where the ranks are. In this order: ranks that run another program than the others in the same
/// step; processes that were stopped; ranks that are behind, for they did not come to what the others wait
/// for. `accused` are ranks that others waited for in vain: they decide where several ranks are behind, or
/// all are at the same place. positions: [rank].
[[nodiscard]] Stall explain_stall(const std::vector<Position>& positions,
                                  const std::vector<int>& accused = {});

/// The first of these: nothing where all ranks that are in the same step run the same program.
[[nodiscard]] Stall compare_programs(const std::vector<Position>& positions);

}  // namespace chiliad::supervise
