#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chiliad/base/hash.h"

namespace chiliad::schedule {

/// What one instruction does. Communication is issued by these alone, at layer borders. Values are hashed:
/// append only.
enum class Op : uint8_t {
  kLoad = 1,                  ///< take the slot's batch and prepare its inputs
  kForward = 2,               ///< layer, slot
  kLoss = 3,                  ///< slot: loss and the gradient of the prediction
  kBackward = 4,              ///< layer, slot: frees what the forward kept
  kReduce = 5,                ///< layer: start the reduction of its gradients to shards
  kAwaitReduce = 6,           ///< layer: wait, and sum the parts in rank order
  kAgree = 7,                 ///< norm, counts, verdicts, flags: the exchange at the end of the step
  kOptimize = 8,              ///< layer: update the owned part
  kGather = 9,                ///< layer: start the gather of its shard from the replicas
  kAwaitGather = 10,          ///< layer: wait
  kUnshard = 11,              ///< layer: start the gather of its whole parameters from the shards
  kAwaitUnshard = 12,         ///< layer: wait
  kReshard = 13,              ///< layer: let the whole parameters go
  kReduceReplicas = 14,       ///< layer: start the reduction of its shard's gradients over the replicas
  kAwaitReduceReplicas = 15,  ///< layer: wait, and sum
  kSumReplicated = 16,        ///< gradients of parameters that tensor-parallel ranks have copies of
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

/// What a program is made for.
struct ProgramOptions {
  int32_t num_layers = 0;
  int32_t num_slots = 0;
  bool sharded = false;            ///< whole parameters are gathered for use
  bool keep = false;               ///< sharded: they stay whole from the first forward to the last backward
  int32_t ahead = 1;               ///< sharded: gathers are started so many layers before they are needed
  bool overlap = true;             ///< else every exchange is awaited where it starts, to see what it costs
  bool tensor_parallel = false;    ///< some parameters have copies on tensor-parallel ranks
  std::vector<bool> lent = {};     ///< by layer: later layers read its parameters, which stay whole so long
  std::vector<bool> trained = {};  ///< by layer; empty: all
};

/// One step of data parallelism with sharded optimizer state, and with sharded parameters where asked. Slots
/// run one after the other. The gather of a layer's parameters is started `ahead` layers before it is needed,
/// forward and backward; where they are let go, the last `ahead` layers stay for their backward. Gradients
/// are reduced as soon as a layer's backward is done (of the last slot; of every slot where parameters are
/// let go in between) and awaited one layer later; shards are gathered from the replicas behind the
/// optimizer. Layers below the first trained one have no backward.
[[nodiscard]] Program make_program(const ProgramOptions& options);

/// Proves a program made for `options`: every backward has its forward and loss, no layer is used without its
/// whole parameters, every gradient is reduced exactly once, every start has its wait, every trained layer is
/// optimized once after the agreement, nothing stays in flight or in memory. Throws InternalError naming the
/// instruction.
void check(const Program& program, const ProgramOptions& options);

}  // namespace chiliad::schedule
