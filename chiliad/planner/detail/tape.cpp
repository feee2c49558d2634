#include "chiliad/planner/detail/tape.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "chiliad/base/error.h"

namespace chiliad::planner::detail {

const LayerMemory::Mode& LayerMemory::of(spec::Recompute mode) const {
  switch (mode) {
    case spec::Recompute::kNone:
      return none;
    case spec::Recompute::kSelective:
      return selective;
    case spec::Recompute::kLayers:
      return layers;
  }
  return none;
}

int64_t LayerMemory::all_outputs() const {
  return std::accumulate(outputs.begin(), outputs.end(), int64_t{0});
}

Value Tape::input(int64_t bytes, bool has_gradient) {
  const auto value = static_cast<Value>(tensors_.size());
  Tensor tensor;
  tensor.owner = value;
  tensor.bytes = tensor.gradient = bytes;
  tensor.differentiable = has_gradient;
  tensor.is_input = true;
  tensors_.push_back(tensor);
  if (has_gradient) inputs_.push_back(value);
  return value;
}

Value Tape::parameter(int64_t bytes) {
  const Value value = input(bytes, false);
  tensors_.back().differentiable = true;
  tensors_.back().bytes = 0;
  return value;
}

Value Tape::add(TapeOp op) {
  const auto value = static_cast<Value>(tensors_.size());
  Tensor tensor;
  const bool is_view = op.result == 0 && !op.inputs.empty();
  tensor.owner = is_view ? tensors_[static_cast<size_t>(op.inputs[0])].owner : value;
  tensor.bytes = op.result;
  tensor.gradient = op.gradient >= 0 ? op.gradient : op.result;
  tensor.differentiable = op.adds_weight_gradient || op.weight_gradient > 0;
  for (const Value input : op.inputs) {
    tensor.differentiable |= tensors_[static_cast<size_t>(input)].differentiable;
  }
  tensors_.push_back(tensor);
  ops_.push_back(std::move(op));
  results_.push_back(value);
  return value;
}

void Tape::make_again(Value value, int64_t work) {
  Tensor& tensor = tensors_[static_cast<size_t>(value)];
  CHILIAD_CHECK_EQ(tensor.owner, value);
  tensor.again = true;
  tensor.again_work = work;
}

Value Tape::hold(Value value) {
  tensors_[static_cast<size_t>(memory_of(value).owner)].is_held = true;
  return value;
}

void Tape::output(Value value) {
  output_part(value, tensors_[static_cast<size_t>(value)].bytes);
}

void Tape::output_part(Value value, int64_t bytes) {
  outputs_.push_back(value);
  output_bytes_.push_back(bytes);
  tensors_[static_cast<size_t>(memory_of(value).owner)].is_output = true;
}

const Tape::Tensor& Tape::memory_of(Value value) const {
  return tensors_[static_cast<size_t>(tensors_[static_cast<size_t>(value)].owner)];
}

std::vector<Value> Tape::saved_by(size_t op) const {
  std::vector<Value> owners;
  for (const Value value : ops_[op].saved) owners.push_back(memory_of(value).owner);
  if (ops_[op].saves_result) owners.push_back(memory_of(results_[op]).owner);
  return owners;
}

Tape::Run Tape::forward(bool graph, bool selective) const {
  std::vector<size_t> last_use(tensors_.size());
  std::vector<bool> stays(tensors_.size());
  for (size_t i = 0; i < ops_.size(); ++i) {
    last_use[static_cast<size_t>(memory_of(results_[i]).owner)] = i;
    for (const Value input : ops_[i].inputs) last_use[static_cast<size_t>(memory_of(input).owner)] = i;
    for (const Value value : ops_[i].beside) last_use[static_cast<size_t>(memory_of(value).owner)] = i;
    if (!graph || !tensors_[static_cast<size_t>(results_[i])].differentiable) continue;
    for (const Value owner : saved_by(i)) {
      if (!selective || !tensors_[static_cast<size_t>(owner)].again) stays[static_cast<size_t>(owner)] = true;
    }
  }
  Run run;
  for (size_t i = 0; i < ops_.size(); ++i) {
    run.left += ops_[i].result;
    if (graph && tensors_[static_cast<size_t>(results_[i])].differentiable) run.left += ops_[i].kept;
    run.peak = std::max(run.peak, run.left + ops_[i].forward_work);
    for (size_t at = 0; at < tensors_.size(); ++at) {
      const Tensor& tensor = tensors_[at];
      const bool is_temporary =
          tensor.owner == static_cast<Value>(at) && !tensor.is_input && !tensor.is_output && !stays[at];
      const size_t goes_after = tensor.is_held ? ops_.size() - 1 : last_use[at];
      if (is_temporary && goes_after == i) run.left -= tensor.bytes;
    }
  }
  return run;
}

/// Gradients as tensors that several may hold, and what forward kept, until each is gone.
class Tape::Backward {
 public:
  Backward(const Tape& tape, bool selective)
      : tape_(tape),
        selective_(selective),
        gradient_of_(tape.tensors_.size(), -1),
        uses_(tape.tensors_.size()),
        filled_(tape.tensors_.size()) {
    for (size_t i = 0; i < tape_.ops_.size(); ++i) {
      for (const Value owner : tape_.saved_by(i)) ++uses_[static_cast<size_t>(owner)];
    }
    for (const Value output : tape_.outputs_) {  // the caller's, all the time
      const auto at = static_cast<size_t>(output);
      if (tape_.tensors_[at].differentiable) gradient_of_[at] = make(0, 2);
    }
  }

  int64_t peak() {
    for (size_t i = tape_.ops_.size(); i-- > 0;) step(i);
    return peak_;
  }

 private:
  struct Gradient {
    int64_t bytes;
    int holders;
  };

  int32_t make(int64_t bytes, int holders = 1) {
    gradients_.push_back({bytes, holders});
    grow(bytes);
    return static_cast<int32_t>(gradients_.size() - 1);
  }
  void drop(int32_t gradient) {
    Gradient& held = gradients_[static_cast<size_t>(gradient)];
    if (--held.holders == 0) live_ -= held.bytes;
  }
  void grow(int64_t bytes) {
    live_ += bytes;
    peak_ = std::max(peak_, live_);
  }

  void fill(Value owner) {
    const Tensor& tensor = tape_.tensors_[static_cast<size_t>(owner)];
    if (!selective_ || !tensor.again || filled_[static_cast<size_t>(owner)]) return;
    filled_[static_cast<size_t>(owner)] = true;
    grow(tensor.bytes);
    peak_ = std::max(peak_, live_ + tensor.again_work);
  }

  void release(size_t op) {
    live_ -= tape_.ops_[op].kept;
    for (const Value owner : tape_.saved_by(op)) {
      const auto at = static_cast<size_t>(owner);
      const Tensor& tensor = tape_.tensors_[at];
      if (--uses_[at] == 0 && !tensor.is_input && !tensor.is_output) live_ -= tensor.bytes;
    }
  }

  void give(Value input, int32_t gradient) {
    int32_t& mine = gradient_of_[static_cast<size_t>(input)];
    if (mine < 0) {
      mine = gradient;
      return;
    }
    const int32_t sum = gradients_[static_cast<size_t>(mine)].holders == 1
                            ? std::exchange(mine, -1)
                            : make(gradients_[static_cast<size_t>(gradient)].bytes);
    if (mine >= 0) drop(mine);
    drop(gradient);
    mine = sum;
  }

  void step(size_t i) {
    const TapeOp& op = tape_.ops_[i];
    const auto result = static_cast<size_t>(tape_.results_[i]);
    if (!tape_.tensors_[result].differentiable) return;
    const int32_t upstream = gradient_of_[result];
    if (upstream < 0) return release(i);
    for (const Value owner : tape_.saved_by(i)) fill(owner);
    std::vector<std::pair<Value, int32_t>> given;
    for (const Value input : op.inputs) {
      const Tensor& tensor = tape_.tensors_[static_cast<size_t>(input)];
      if (!tensor.differentiable) continue;
      if (op.passes_gradient) {
        ++gradients_[static_cast<size_t>(upstream)].holders;
        given.emplace_back(input, upstream);
      } else {
        given.emplace_back(input, make(tensor.gradient));
      }
    }
    peak_ = std::max(peak_, live_ + op.weight_gradient + op.backward_work);
    drop(upstream);
    release(i);
    peak_ = std::max(peak_, live_ + op.weight_gradient);
    for (const auto& [input, gradient] : given) give(input, gradient);
  }

  const Tape& tape_;
  bool selective_;
  std::vector<int32_t> gradient_of_;
  std::vector<int> uses_;
  std::vector<bool> filled_;
  std::vector<Gradient> gradients_;
  int64_t live_ = 0;
  int64_t peak_ = 0;
};

LayerMemory::Mode Tape::mode(bool selective) const {
  const Run run = forward(true, selective);
  const int64_t outputs = std::accumulate(output_bytes_.begin(), output_bytes_.end(), int64_t{0});
  return {run.left - outputs, run.peak, Backward(*this, selective).peak()};
}

LayerMemory Tape::memory() const {
  LayerMemory memory;
  memory.outputs = output_bytes_;
  for (const Value input : inputs_) {
    memory.input_gradients.push_back(tensors_[static_cast<size_t>(input)].gradient);
  }
  memory.none = mode(false);
  memory.selective = mode(true);
  memory.layers.forward = forward(false, false).peak;
  memory.layers.backward =
      std::max(memory.none.forward, memory.none.kept + memory.all_outputs() + memory.none.backward);
  return memory;
}

}  // namespace chiliad::planner::detail
