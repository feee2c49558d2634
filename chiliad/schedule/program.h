#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chiliad/base/hash.h"

namespace chiliad::schedule {

/// What one instruction does. Communication is issued by these alone, at layer borders. Values are hashed:
/// append only.
enum class Op : uint8_t {
  kLoad = 1,          ///< take the slot's batch and prepare its inputs
  kForward = 2,       ///< layer, slot
  kLoss = 3,          ///< slot: loss and the gradient of the prediction
  kBackward = 4,      ///< layer, slot: frees what the forward kept
  kReduce = 5,        ///< layer: start the reduction of its gradients
  kAwaitReduce = 6,   ///< layer: wait, and sum the parts in rank order
  kAgree = 7,         ///< norm, counts, verdicts, flags: the exchange at the end of the step
  kOptimize = 8,      ///< layer: update the owned part
  kGather = 9,        ///< layer: start the gather of its parameters
  kAwaitGather = 10,  ///< layer: wait
};

[[nodiscard]] const char* op_name(Op op);

struct Instruction {
  Op op = Op::kLoad;
  int32_t layer = -1;
  int32_t slot = -1;
  bool operator==(const Instruction&) const = default;
};

/// What a rank does in one step. Every rank of a group has the same program, whatever its slots hold.
struct Program {
  int32_t num_layers = 0;
  int32_t num_slots = 0;
  std::vector<Instruction> instructions;
  /// One hash tells whether all ranks agree.
  [[nodiscard]] Digest digest() const;
};

/// Replicated data parallelism with sharded optimizer state: slots one after the other, gradients reduced as
/// soon as the last slot's backward has passed a layer, parameters gathered behind the optimizer.
[[nodiscard]] Program make_data_parallel_program(int32_t num_layers, int32_t num_slots);

/// Proves a program: every backward has its forward and loss, every reduction comes after the layer's last
/// backward, every start has its wait, every layer is optimized once after the agreement, nothing stays in
/// flight. Throws InternalError naming the instruction.
void check(const Program& program);

}  // namespace chiliad::schedule
