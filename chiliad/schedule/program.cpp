#include "chiliad/schedule/program.h"

#include <array>

namespace chiliad::schedule {

const char* op_name(Op op) {
  constexpr std::array<const char*, 11> kNames{"none",     "load",   "forward",      "loss",
                                               "backward", "reduce", "await_reduce", "agree",
                                               "optimize", "gather", "await_gather"};
  return kNames[static_cast<size_t>(op)];
}

Digest Program::digest() const {
  Hasher hasher;
  hasher.add(num_layers).add(num_slots);
  for (const auto& instruction : instructions) {
    hasher.add(static_cast<int>(instruction.op)).add(instruction.layer).add(instruction.slot);
  }
  return hasher.digest();
}

Program make_data_parallel_program(int32_t num_layers, int32_t num_slots) {
  Program program{num_layers, num_slots, {}};
  auto emit = [&](Op op, int32_t layer, int32_t slot) { program.instructions.push_back({op, layer, slot}); };
  for (int32_t slot = 0; slot < num_slots; ++slot) {
    emit(Op::kLoad, -1, slot);
    for (int32_t layer = 0; layer < num_layers; ++layer) emit(Op::kForward, layer, slot);
    emit(Op::kLoss, -1, slot);
    for (int32_t layer = num_layers - 1; layer >= 0; --layer) {
      emit(Op::kBackward, layer, slot);
      if (slot == num_slots - 1) emit(Op::kReduce, layer, -1);
    }
  }
  for (int32_t layer = num_layers - 1; layer >= 0; --layer) emit(Op::kAwaitReduce, layer, -1);
  emit(Op::kAgree, -1, -1);
  for (int32_t layer = 0; layer < num_layers; ++layer) {
    emit(Op::kOptimize, layer, -1);
    emit(Op::kGather, layer, -1);
  }
  for (int32_t layer = 0; layer < num_layers; ++layer) emit(Op::kAwaitGather, layer, -1);
  return program;
}

}  // namespace chiliad::schedule
