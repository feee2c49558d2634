#include <set>
#include <utility>
#include <vector>

#include "chiliad/base/error.h"
#include "chiliad/schedule/program.h"

namespace chiliad::schedule {
namespace {

enum class Whole { kNo, kComing, kYes };

/// State of one layer's parameters within the step.
struct LayerState {
  Whole whole = Whole::kNo;
  int unreduced = 0;  // backwards whose gradients are in the whole buffer
  bool reducing = false;
  int reduced = 0;  // backwards whose gradients are in the shard
  bool reducing_replicas = false;
  bool complete = false;
  bool optimized = false;
  bool gathering = false;
  bool gathered = false;
};

class Checker {
 public:
  Checker(const Program& program, const ProgramOptions& options)
      : program_(program), options_(options), layers_(static_cast<size_t>(program.num_layers)) {
    while (first_trained_ < program.num_layers && !trained(first_trained_)) ++first_trained_;
  }

  void run() {
    for (index_ = 0; index_ < program_.instructions.size(); ++index_) step(program_.instructions[index_]);
    require(std::ssize(losses_) == program_.num_slots, "a slot was not worked on");
    require(forwards_.empty(), "activations stay in memory at the end");
    require(agreed_, "no agreement");
    for (int32_t layer = 0; layer < program_.num_layers; ++layer) {
      const auto& state = layers_[static_cast<size_t>(layer)];
      require(state.whole == Whole::kNo, "whole parameters stay in memory at the end");
      require(state.gathered || !trained(layer), "a layer's parameters are not gathered");
    }
  }

 private:
  void require(bool condition, const char* what) const {
    if (condition) return;
    const std::string where = index_ < program_.instructions.size()
                                  ? op_name(program_.instructions[index_].op)
                                  : "end of the program";
    throw InternalError(fmt::format("program, instruction {} ({})", index_, where), what);
  }
  [[nodiscard]] bool trained(int32_t layer) const {
    return options_.trained.empty() || options_.trained[static_cast<size_t>(layer)];
  }

  LayerState& layer(const Instruction& instruction) {
    require(instruction.layer >= 0 && instruction.layer < program_.num_layers, "layer out of range");
    return layers_[static_cast<size_t>(instruction.layer)];
  }
  LayerState& trained_layer(const Instruction& instruction) {
    LayerState& state = layer(instruction);
    require(trained(instruction.layer), "the layer is not trained");
    return state;
  }

  void step(const Instruction& i) {
    switch (i.op) {
      case Op::kLoad:
        require(i.slot >= 0 && i.slot < program_.num_slots, "slot out of range");
        require(loaded_.insert(i.slot).second, "slot loaded twice");
        return;
      case Op::kForward:
        return forward(i);
      case Op::kLoss:
        return loss(i);
      case Op::kBackward:
        return backward(i);
      case Op::kUnshard:
      case Op::kAwaitUnshard:
      case Op::kReshard:
        return unshard(i);
      case Op::kReduce:
      case Op::kAwaitReduce:
        return reduce(i);
      case Op::kReduceReplicas:
      case Op::kAwaitReduceReplicas:
        return reduce_replicas(i);
      case Op::kSumReplicated:
        require(options_.tensor_parallel && all_complete(), "sum before all gradients are reduced");
        require(!agreed_ && !std::exchange(summed_, true), "second sum, or after the agreement");
        return;
      case Op::kAgree:
        require(all_complete(), "agreement before all gradients are reduced");
        require(summed_ || !options_.tensor_parallel, "agreement before the sum of replicated gradients");
        require(!std::exchange(agreed_, true), "second agreement");
        return;
      case Op::kOptimize:
        require(agreed_ && !trained_layer(i).optimized, "optimizer before the agreement, or twice");
        layer(i).optimized = true;
        return;
      case Op::kGather:
        require(trained_layer(i).optimized && !layer(i).gathering && !layer(i).gathered,
                "gather before the optimizer, or twice");
        layer(i).gathering = true;
        return;
      case Op::kAwaitGather:
        require(layer(i).gathering, "wait without a gather");
        layer(i).gathering = false;
        layer(i).gathered = true;
        return;
    }
    require(false, "unknown instruction");
  }

  [[nodiscard]] bool all_complete() const {
    for (int32_t layer = 0; layer < program_.num_layers; ++layer) {
      if (trained(layer) && !layers_[static_cast<size_t>(layer)].complete) return false;
    }
    return true;
  }

  void require_whole(const Instruction& i) {
    const bool there = !options_.sharded || layer(i).whole == Whole::kYes;
    require(there, "the layer's parameters are not whole");
  }

  void forward(const Instruction& i) {
    require_whole(i);
    require(loaded_.count(i.slot) == 1, "forward of a slot that is not loaded");
    require(i.layer == 0 || done_.count({i.layer - 1, i.slot}) == 1, "forward before the layer below");
    require(done_.insert({i.layer, i.slot}).second, "second forward");
    if (i.layer >= first_trained_) forwards_.insert({i.layer, i.slot});
  }

  void loss(const Instruction& i) {
    require(done_.count({program_.num_layers - 1, i.slot}) == 1, "loss before the last forward");
    require(losses_.insert(i.slot).second, "second loss of a slot");
  }

  void backward(const Instruction& i) {
    require_whole(i);
    require(losses_.count(i.slot) == 1, "backward before the loss");
    require(i.layer == program_.num_layers - 1 || forwards_.count({i.layer + 1, i.slot}) == 0,
            "backward before the layer above");
    require(forwards_.erase({i.layer, i.slot}) == 1, "backward without its forward");
    require(!layer(i).reducing && !layer(i).reducing_replicas, "backward while gradients are reduced");
    if (trained(i.layer)) ++layer(i).unreduced;
  }

  void unshard(const Instruction& i) {
    require(options_.sharded, "parameters are not sharded");
    LayerState& state = layer(i);
    const auto expected = i.op == Op::kUnshard        ? Whole::kNo
                          : i.op == Op::kAwaitUnshard ? Whole::kComing
                                                      : Whole::kYes;
    require(state.whole == expected, "the layer's parameters are in another state");
    require(!agreed_, "after the agreement");
    state.whole = i.op == Op::kUnshard        ? Whole::kComing
                  : i.op == Op::kAwaitUnshard ? Whole::kYes
                                              : Whole::kNo;
  }

  void reduce(const Instruction& i) {
    require(options_.sharded, "parameters are not sharded");
    LayerState& state = trained_layer(i);
    if (i.op == Op::kReduce) {
      require(state.unreduced > 0 && !state.reducing, "reduction without gradients, or a second one");
      state.reducing = true;
      return;
    }
    require(state.reducing, "wait without a reduction");
    state.reducing = false;
    state.reduced += std::exchange(state.unreduced, 0);
  }

  void reduce_replicas(const Instruction& i) {
    LayerState& state = trained_layer(i);
    if (i.op == Op::kReduceReplicas) {
      const int ready = options_.sharded ? state.reduced : state.unreduced;
      require(ready == program_.num_slots && !state.reducing, "reduction before the layer's last gradients");
      require(!state.reducing_replicas && !state.complete, "second reduction");
      state.reducing_replicas = true;
      return;
    }
    require(state.reducing_replicas, "wait without a reduction");
    state.reducing_replicas = false;
    state.complete = true;
  }

  const Program& program_;
  const ProgramOptions& options_;
  std::vector<LayerState> layers_;
  int32_t first_trained_ = 0;
  std::set<int32_t> loaded_;
  std::set<int32_t> losses_;
  std::set<std::pair<int32_t, int32_t>> done_;      // (layer, slot) that went forward
  std::set<std::pair<int32_t, int32_t>> forwards_;  // with activations in memory
  bool summed_ = false;
  bool agreed_ = false;
  size_t index_ = 0;
};

}  // namespace

void check(const Program& program, const ProgramOptions& options) {
  Checker(program, options).run();
}

}  // namespace chiliad::schedule
