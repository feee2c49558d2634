#include "chiliad/schedule/program.h"

#include <algorithm>
#include <array>
#include <deque>
#include <utility>

namespace chiliad::schedule {

const char* op_name(Op op) {
  constexpr std::array<const char*, 17> kNames{
      "none",          "load",    "forward",         "loss",
      "backward",      "reduce",  "await_reduce",    "agree",
      "optimize",      "gather",  "await_gather",    "unshard",
      "await_unshard", "reshard", "reduce_replicas", "await_reduce_replicas",
      "sum_replicated"};
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

namespace {

/// Writes the instructions of one step.
class Generator {
 public:
  explicit Generator(const ProgramOptions& options)
      : options_(options),
        last_layer_(options.num_layers - 1),
        program_{options.num_layers, options.num_slots, {}} {
    while (first_trained_ < options.num_layers && !trained(first_trained_)) ++first_trained_;
  }

  Program make() {
    for (int32_t slot = 0; slot < options_.num_slots; ++slot) {
      emit(Op::kLoad, -1, slot);
      forward(slot);
      emit(Op::kLoss, -1, slot);
      backward(slot);
    }
    for (int32_t layer = last_layer_; layer >= 0; --layer) {
      if (trained(layer)) emit(Op::kAwaitReduceReplicas, layer);
    }
    if (options_.tensor_parallel) emit(Op::kSumReplicated);
    emit(Op::kAgree);
    update();
    return std::move(program_);
  }

 private:
  [[nodiscard]] bool trained(int32_t layer) const {
    return options_.trained.empty() || options_.trained[static_cast<size_t>(layer)];
  }
  [[nodiscard]] bool is_last(int32_t slot) const { return slot == options_.num_slots - 1; }
  /// Whether whole parameters are gathered for the forward of a slot, or still there from the one before.
  [[nodiscard]] bool gathers(int32_t slot) const { return options_.sharded && (!options_.keep || slot == 0); }
  [[nodiscard]] bool frees() const { return options_.sharded && !options_.keep; }
  [[nodiscard]] bool is_lent(int32_t layer) const {
    return !options_.lent.empty() && options_.lent[static_cast<size_t>(layer)];
  }
  /// Whether a layer's parameters go after its forward; else they stay until its backward, or the end of the
  /// slot where it has none.
  [[nodiscard]] bool goes_after_forward(int32_t layer) const {
    if (!frees() || is_lent(layer)) return false;
    // The last ones are needed again at once: they would be on their way already.
    return layer <= last_layer_ - options_.ahead || layer < first_trained_;
  }

  void emit(Op op, int32_t layer = -1, int32_t slot = -1) {
    program_.instructions.push_back({op, layer, slot});
  }

  void forward(int32_t slot) {
    const int32_t ahead = options_.ahead;
    for (int32_t layer = 0; gathers(slot) && layer < std::min(ahead, last_layer_ + 1); ++layer)
      emit(Op::kUnshard, layer);
    for (int32_t layer = 0; layer <= last_layer_; ++layer) {
      if (gathers(slot) && layer + ahead <= last_layer_) emit(Op::kUnshard, layer + ahead);
      if (gathers(slot)) emit(Op::kAwaitUnshard, layer);
      emit(Op::kForward, layer, slot);
      if (goes_after_forward(layer)) emit(Op::kReshard, layer);
    }
  }

  void backward(int32_t slot) {
    std::deque<int32_t> reducing;
    for (int32_t layer = last_layer_; layer >= first_trained_; --layer) {
      const int32_t next = layer - options_.ahead;
      if (next >= first_trained_ && goes_after_forward(next)) emit(Op::kUnshard, next);
      if (goes_after_forward(layer)) emit(Op::kAwaitUnshard, layer);
      emit(Op::kBackward, layer, slot);
      if (frees() || (options_.sharded && is_last(slot))) emit(Op::kReshard, layer);
      if (trained(layer) && (frees() || is_last(slot))) {
        if (options_.sharded) emit(Op::kReduce, layer);
        reducing.push_back(layer);
      }
      // The next reduction is on the wire before the wait for an earlier one.
      const int32_t late = options_.sharded ? options_.ahead : 0;
      while (!reducing.empty() && reducing.front() - layer >= late) finish_first(reducing, slot);
    }
    while (!reducing.empty()) finish_first(reducing, slot);
    // Layers without a backward whose parameters are still whole.
    if (!frees() && !(options_.sharded && is_last(slot))) return;
    for (int32_t layer = first_trained_ - 1; layer >= 0; --layer) {
      if (!goes_after_forward(layer)) emit(Op::kReshard, layer);
    }
  }

  void finish_first(std::deque<int32_t>& reducing, int32_t slot) {
    const int32_t layer = reducing.front();
    reducing.pop_front();
    if (options_.sharded) emit(Op::kAwaitReduce, layer);
    if (is_last(slot)) emit(Op::kReduceReplicas, layer);
  }

  void update() {
    for (int32_t layer = 0; layer <= last_layer_; ++layer) {
      if (!trained(layer)) continue;
      emit(Op::kOptimize, layer);
      emit(Op::kGather, layer);
    }
    for (int32_t layer = 0; layer <= last_layer_; ++layer) {
      if (trained(layer)) emit(Op::kAwaitGather, layer);
    }
  }

  const ProgramOptions& options_;
  int32_t last_layer_;
  int32_t first_trained_ = 0;
  Program program_;
};

/// The instruction that waits for what `op` starts; kLoad where it starts nothing.
Op await_of(Op op) {
  switch (op) {
    case Op::kUnshard:
      return Op::kAwaitUnshard;
    case Op::kReduce:
      return Op::kAwaitReduce;
    case Op::kReduceReplicas:
      return Op::kAwaitReduceReplicas;
    case Op::kGather:
      return Op::kAwaitGather;
    default:
      return Op::kLoad;
  }
}

bool is_await(Op op) {
  return op == Op::kAwaitUnshard || op == Op::kAwaitReduce || op == Op::kAwaitReduceReplicas ||
         op == Op::kAwaitGather;
}

/// The same with every wait right after its start.
Program without_overlap(const Program& program) {
  Program serial{program.num_layers, program.num_slots, {}};
  for (const auto& instruction : program.instructions) {
    if (is_await(instruction.op)) continue;
    serial.instructions.push_back(instruction);
    const Op await = await_of(instruction.op);
    if (await != Op::kLoad) serial.instructions.push_back({await, instruction.layer, -1});
  }
  return serial;
}

}  // namespace

Program make_program(const ProgramOptions& options) {
  const Program program = Generator(options).make();
  return options.overlap ? program : without_overlap(program);
}

}  // namespace chiliad::schedule
