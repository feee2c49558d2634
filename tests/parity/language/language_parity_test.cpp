// Llama and Qwen2 against values of transformers: hidden states, logits, loss and every gradient.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "chiliad/base/error.h"
#include "chiliad/model/build_model.h"
#include "chiliad/model/language_model.h"
#include "chiliad/ops/rms_norm.h"
#include "chiliad/parallel/segment.h"
#include "chiliad/weights/configs/language.h"
#include "tests/parity/training/golden.h"
#include "tests/support/kits.h"

namespace chiliad::model {
namespace {

using test::GoldenCase;
using test::relative_difference;

/// The kit's tolerances: the reference computes in fp32.
constexpr double kTolerance = 1e-5;
constexpr double kGradientTolerance = 2e-5;

/// The values of [rows, width, ...] that are no padding, one row after the other.
at::Tensor packed(const at::Tensor& padded, const at::Tensor& mask) {
  std::vector<at::Tensor> rows;
  for (int64_t row = 0; row < mask.size(0); ++row)
    rows.push_back(padded[row].narrow(0, 0, mask[row].sum().item<int64_t>()));
  return at::cat(rows);
}

/// A row is a document; the target of a token is the next one's label.
TextBatch make_batch(const GoldenCase& golden) {
  const at::Tensor& mask = golden.inputs.at("attention_mask");
  at::Tensor targets = at::full_like(golden.inputs.at("labels"), -100);
  const int64_t width = targets.size(1);
  targets.narrow(1, 0, width - 1).copy_(golden.inputs.at("labels").narrow(1, 1, width - 1));
  TextBatch batch;
  batch.tokens = packed(golden.inputs.at("input_ids"), mask);
  batch.targets = packed(targets, mask);
  batch.cu_seqlens = at::cat({at::zeros({1}, at::kLong), mask.sum({1}).cumsum(0)});
  batch.token_weights = at::full(batch.tokens.sizes(), 1.0, at::kFloat) /
                        golden.expected.at("supervised_tokens").to(at::kFloat);
  return batch;
}

class LanguageParity : public testing::TestWithParam<std::string> {
 protected:
  LanguageParity()
      : golden_(test::read_golden(GetParam())),
        options_(weights::read_language_config(test::golden_kit() / GetParam() / "config.json")),
        batch_(make_batch(golden_)) {
    layers_ = build_model(options_);
    for (auto& layer : layers_) {
      std::vector<at::Tensor> params;
      for (const auto& decl : layer->decl().params)
        params.push_back(golden_.weights.at(decl.name).clone().set_requires_grad(true));
      layer->bind(std::move(params));
    }
  }

  /// Runs all layers, each as its own segment.
  layers::Carry forward() {
    layers::Carry carry = make_text_input(options_, batch_);
    for (const auto& layer : layers_) {
      segments_.push_back(parallel::run_forward(*layer, carry));
      hidden_.push_back(carry.get("hidden").squeeze(0));
    }
    return carry;
  }

  GoldenCase golden_;
  spec::ModelOptions options_;
  TextBatch batch_;
  std::vector<std::unique_ptr<layers::Layer>> layers_;
  std::vector<parallel::Segment> segments_;
  std::vector<at::Tensor> hidden_;
};

TEST_P(LanguageParity, EveryParameterIsOfTheCheckpoint) {
  size_t declared = 0;
  for (const auto& layer : layers_) {
    for (const auto& param : layer->decl().params) {
      EXPECT_EQ(golden_.weights.at(param.name).sizes().vec(), param.shape.sizes()) << param.name;
      ++declared;
    }
  }
  EXPECT_EQ(declared, golden_.weights.size());
}

TEST_P(LanguageParity, HiddenStatesMatch) {
  (void)forward();
  const int64_t last = golden_.count("hidden_states.") - 1;
  ASSERT_EQ(last, options_.depth);
  // The last one is behind the final norm.
  hidden_.at(static_cast<size_t>(last)) =
      ops::rms_norm(hidden_.at(static_cast<size_t>(last)), layers_.back()->params()[0], options_.norm_eps);
  for (int64_t i = 0; i <= last; ++i) {
    const at::Tensor expected = packed(golden_.expected.at("hidden_states." + std::to_string(i)),
                                       golden_.inputs.at("attention_mask"));
    const double difference = relative_difference(hidden_.at(static_cast<size_t>(i)), expected);
    EXPECT_LT(difference, kTolerance) << i;
    RecordProperty("hidden_" + std::to_string(i), std::to_string(difference * 1e9) + "e-9");
  }
}

TEST_P(LanguageParity, SupervisedLogitsMatch) {
  const at::NoGradGuard no_grad;
  TextBatch batch = batch_;
  batch.targets.reset();
  layers::Carry carry = make_text_input(options_, batch);
  for (const auto& layer : layers_) layer->forward(carry);
  const at::Tensor supervised = batch_.targets.ne(-100).nonzero().squeeze(1);
  const double difference = relative_difference(carry.get("logits").index_select(0, supervised),
                                                golden_.expected.at("supervised_logits"));
  EXPECT_LT(difference, kTolerance);
  RecordProperty("logits", std::to_string(difference * 1e9) + "e-9");
}

TEST_P(LanguageParity, LossMatches) {
  const layers::Carry carry = forward();
  const double difference = relative_difference(carry.get("loss"), golden_.expected.at("loss"));
  EXPECT_LT(difference, kTolerance);
  EXPECT_LT(relative_difference(carry.get("token_losses").sum(), golden_.expected.at("loss_sum")),
            kTolerance);
  RecordProperty("loss", std::to_string(difference * 1e9) + "e-9");
}

TEST_P(LanguageParity, EveryGradientMatches) {
  (void)forward();
  layers::Carry gradients;
  gradients.set("loss", at::ones({}, at::kFloat));
  for (; !segments_.empty(); segments_.pop_back())
    parallel::run_backward(std::move(segments_.back()), gradients);
  double largest = 0.0;
  for (const auto& [name, value] : golden_.expected) {
    if (name.starts_with("grad.")) largest = std::max(largest, value.abs().max().item<double>());
  }
  double worst = 0.0;
  for (const auto& layer : layers_) {
    for (size_t i = 0; i < layer->params().size(); ++i) {
      const std::string& name = layer->decl().params[i].name;
      const at::Tensor& actual = layer->params()[i].grad();
      ASSERT_TRUE(actual.defined()) << name;
      const double difference =
          (actual - golden_.expected.at("grad." + name)).abs().max().item<double>() / largest;
      EXPECT_LT(difference, kGradientTolerance) << name;
      worst = std::max(worst, difference);
    }
  }
  RecordProperty("gradients", std::to_string(worst * 1e9) + "e-9");
}

/// Those that the kit has; two are always there.
std::vector<std::string> cases() {
  std::vector<std::string> found{"llama_llama3", "qwen2_untied"};
  for (const char* name : {"llama_default", "llama_linear", "llama_yarn", "qwen2_tied"}) {
    if (std::filesystem::exists(test::golden_kit() / name)) found.emplace_back(name);
  }
  return found;
}

INSTANTIATE_TEST_SUITE_P(Kit, LanguageParity, testing::ValuesIn(cases()), [](const auto& test) {
  std::string name = test.param;
  std::erase(name, '_');
  return name;
});

}  // namespace
}  // namespace chiliad::model
