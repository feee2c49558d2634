#include <set>
#include <utility>
#include <vector>

#include "chiliad/base/error.h"
#include "chiliad/schedule/program.h"

namespace chiliad::schedule {
namespace {

/// State of one layer's parameters within the step.
struct LayerState {
  int backwards = 0;
  bool reducing = false;
  bool reduced = false;
  bool optimized = false;
  bool gathering = false;
  bool gathered = false;
};

class Checker {
 public:
  explicit Checker(const Program& program)
      : program_(program), layers_(static_cast<size_t>(program.num_layers)) {}

  void run() {
    for (index_ = 0; index_ < program_.instructions.size(); ++index_) step(program_.instructions[index_]);
    require(forwards_.empty(), "activations stay in memory at the end");
    require(agreed_, "no agreement");
    for (const auto& layer : layers_) require(layer.gathered, "a layer's parameters are not gathered");
  }

 private:
  void require(bool condition, const char* what) const {
    if (condition) return;
    const std::string where = index_ < program_.instructions.size()
                                  ? op_name(program_.instructions[index_].op)
                                  : "end of the program";
    throw InternalError(fmt::format("program, instruction {} ({})", index_, where), what);
  }

  LayerState& layer(const Instruction& instruction) {
    require(instruction.layer >= 0 && instruction.layer < program_.num_layers, "layer out of range");
    return layers_[static_cast<size_t>(instruction.layer)];
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
        require(forwards_.count({program_.num_layers - 1, i.slot}) == 1, "loss before the last forward");
        require(losses_.insert(i.slot).second, "second loss of a slot");
        return;
      case Op::kBackward:
        return backward(i);
      case Op::kReduce:
        require(layer(i).backwards == program_.num_slots, "reduction before the last backward of the layer");
        require(!layer(i).reducing && !layer(i).reduced, "second reduction");
        layer(i).reducing = true;
        return;
      case Op::kAwaitReduce:
        require(layer(i).reducing, "wait without a reduction");
        layer(i).reducing = false;
        layer(i).reduced = true;
        return;
      case Op::kAgree:
        for (const auto& state : layers_)
          require(state.reduced, "agreement before all gradients are reduced");
        require(!std::exchange(agreed_, true), "second agreement");
        return;
      case Op::kOptimize:
        require(agreed_ && !layer(i).optimized, "optimizer before the agreement, or twice");
        layer(i).optimized = true;
        return;
      case Op::kGather:
        require(layer(i).optimized && !layer(i).gathering && !layer(i).gathered,
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

  void forward(const Instruction& i) {
    layer(i);
    require(loaded_.count(i.slot) == 1, "forward of a slot that is not loaded");
    require(i.layer == 0 || forwards_.count({i.layer - 1, i.slot}) == 1, "forward before the layer below");
    require(forwards_.insert({i.layer, i.slot}).second, "second forward");
  }

  void backward(const Instruction& i) {
    require(losses_.count(i.slot) == 1, "backward before the loss");
    require(i.layer == program_.num_layers - 1 || forwards_.count({i.layer + 1, i.slot}) == 0,
            "backward before the layer above");
    require(forwards_.erase({i.layer, i.slot}) == 1, "backward without its forward");
    ++layer(i).backwards;
  }

  const Program& program_;
  std::vector<LayerState> layers_;
  std::set<int32_t> loaded_;
  std::set<int32_t> losses_;
  std::set<std::pair<int32_t, int32_t>> forwards_;  // (layer, slot) with activations in memory
  bool agreed_ = false;
  size_t index_ = 0;
};

}  // namespace

void check(const Program& program) {
  Checker(program).run();
}

}  // namespace chiliad::schedule
