#include <ATen/ATen.h>

#include <algorithm>

#include "chiliad/device/tensor.h"
#include "chiliad/model/language_model.h"
#include "chiliad/train/task.h"

namespace chiliad::train {
namespace {

/// The weight of a position is that of its document.
at::Tensor token_weights(const loader::Batch& batch) {
  at::Tensor weights = at::empty({batch.cu_seqlens.back()}, at::kFloat);
  float* out = weights.mutable_data_ptr<float>();
  for (size_t i = 0; i < batch.items.size(); ++i) {
    std::fill(out + batch.cu_seqlens[i], out + batch.cu_seqlens[i + 1], batch.items[i].weight);
  }
  return weights;
}

at::Tensor starts(const loader::Batch& batch) {
  at::Tensor tensor = at::empty({std::ssize(batch.cu_seqlens)}, at::kInt);
  std::copy(batch.cu_seqlens.begin(), batch.cu_seqlens.end(), tensor.mutable_data_ptr<int32_t>());
  return tensor;
}

class LanguageSlot final : public SlotTask {
 public:
  LanguageSlot(const spec::RunFile& run, layers::TensorParallel ranks, const loader::Batch& batch)
      : run_(run),
        ranks_(ranks),
        batch_{device::as_tensor(batch.tokens).to(at::kLong), starts(batch),
               device::as_tensor(batch.targets).to(at::kLong), token_weights(batch)} {}

  layers::Carry inputs() override { return model::make_text_input(run_.model, batch_); }

  double loss(const layers::Carry& outputs, double divisor, layers::Carry& gradients) override {
    // Equal on all tensor-parallel ranks: each gives its part of the upstream gradient, the first counts it.
    const at::Tensor& loss = outputs.get("loss");
    gradients.set("loss", at::full_like(loss, 1.0 / (divisor * ranks_.size())));
    return ranks_.rank() == 0 ? loss.item<double>() : 0.0;
  }

 private:
  const spec::RunFile& run_;
  layers::TensorParallel ranks_;
  model::TextBatch batch_;
};

class LanguageTask final : public Task {
 public:
  LanguageTask(const spec::RunFile& run, layers::TensorParallel ranks) : run_(run), ranks_(ranks) {}

  std::unique_ptr<SlotTask> open(const loader::Batch& batch) const override {
    return std::make_unique<LanguageSlot>(run_, ranks_, batch);
  }
  int64_t planned(const loader::RankStep& step) const override { return step.num_tokens; }
  double actual(const loader::Batch& batch) const override {
    const auto targets = batch.targets.as<int32_t>();
    double weight = 0.0;
    for (size_t i = 0; i < batch.items.size(); ++i) {
      for (int32_t at = batch.cu_seqlens[i]; at < batch.cu_seqlens[i + 1]; ++at) {
        if (targets[static_cast<size_t>(at)] != loader::kNoTarget)
          weight += static_cast<double>(batch.items[i].weight);
      }
    }
    return weight;
  }

 private:
  const spec::RunFile& run_;
  layers::TensorParallel ranks_;
};

}  // namespace

std::unique_ptr<Task> make_language_task(const spec::RunFile& run, layers::TensorParallel ranks) {
  return std::make_unique<LanguageTask>(run, ranks);
}

}  // namespace chiliad::train
