// Every layer kind, cut over ranks (threads over shared memory), against one rank: values and gradients.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "chiliad/base/error.h"
#include "chiliad/model/build_model.h"
#include "chiliad/parallel/segment.h"
#include "chiliad/spec/tensor_shard.h"
#include "tests/contract/group/ranks.h"
#include "tests/contract/layers/model_fixture.h"

namespace chiliad::layers {
namespace {

using Named = std::map<std::string, at::Tensor>;

/// What a forward and a backward of a whole model gave on one rank.
struct Outcome {
  at::Tensor output;  // loss, or the prediction of the rank's rows
  Named gradients;    // of the parameters; zero where none arrived
  std::vector<spec::ParamDecl> params;
};

std::string output_of(const spec::ModelOptions& options) {
  return spec::is_language_model(options) ? "loss" : "prediction";
}

/// The rank's part of a logical tensor.
at::Tensor part_of(const at::Tensor& whole, const spec::ParamDecl& decl, int rank, int size) {
  spec::LayerDecl layer{};
  layer.params = {decl};
  const int64_t rows = spec::tensor_shard(layer, size).params[0].shape[0];
  std::vector<at::Tensor> pieces;
  for (const auto& piece : spec::shard_boxes(decl, rank, size, 0, rows)) {
    at::Tensor box = whole;
    for (int axis = 0; axis < decl.shape.rank(); ++axis)
      box = box.narrow(axis, piece.box.offset[axis], piece.box.size[axis]);
    pieces.push_back(box);
  }
  return at::cat(pieces).contiguous();
}

std::vector<spec::ParamDecl> whole_params(const spec::ModelOptions& options) {
  std::vector<spec::ParamDecl> params;
  for (const auto& layer : spec::make_layer_table(options).layers)
    params.insert(params.end(), layer.params.begin(), layer.params.end());
  return params;
}

Named whole_values(const spec::ModelOptions& options) {
  Named values;
  for (const auto& layer : test::make_random_model(options, at::kDouble)) {
    for (size_t i = 0; i < layer->params().size(); ++i)
      values[layer->decl().params[i].name] = layer->params()[i].detach();
  }
  return values;
}

/// d output: uneven. A loss is equal on all ranks, so rank 0 alone gives it; rows are given by their owner.
at::Tensor upstream(const at::Tensor& output, const TensorParallel& ranks, int64_t num_rows) {
  if (output.dim() == 0) return at::full({}, ranks.rank() == 0 ? 0.7 : 0.0, at::kDouble);
  auto sizes = output.sizes().vec();
  sizes[1] = num_rows;
  const at::Tensor all = at::cos(at::arange(output.size(0) * num_rows * output.size(2), at::kDouble) * 1.7);
  return own_rows(ranks, all.view(sizes)).contiguous();
}

Outcome run_model(const spec::ModelOptions& options, const test::TrialShape& shape, const Named& values,
                  const TensorParallel& ranks) {
  const auto decls = whole_params(options);
  const auto layers = model::build_model(options, ranks);
  size_t next = 0;
  for (const auto& layer : layers) {
    std::vector<at::Tensor> params;
    for (const auto& decl : layer->decl().params) {
      at::Tensor part = part_of(values.at(decl.name), decls[next++], ranks.rank(), ranks.size());
      EXPECT_EQ(part.sizes().vec(), decl.shape.sizes()) << decl.name;
      params.push_back(part.clone().set_requires_grad(true));
    }
    layer->bind(std::move(params));
  }
  Carry carry = test::make_trial_input(options, shape, at::kDouble);
  std::vector<parallel::Segment> segments;
  for (const auto& layer : layers) segments.push_back(parallel::run_forward(*layer, carry));
  Outcome outcome;
  outcome.output = carry.get(output_of(options));
  Carry gradients;
  gradients.set(output_of(options), upstream(outcome.output, ranks, shape.rows * shape.columns));
  for (; !segments.empty(); segments.pop_back())
    parallel::run_backward(std::move(segments.back()), gradients);
  for (const auto& layer : layers) {
    for (size_t i = 0; i < layer->params().size(); ++i) {
      const at::Tensor& param = layer->params()[i];
      outcome.gradients[layer->decl().params[i].name] =
          param.grad().defined() ? param.grad() : at::zeros_like(param).detach();
    }
  }
  return outcome;
}

struct Trial {
  const char* name;
  spec::ModelOptions options;
  test::TrialShape shape;
  int ranks = 2;
};

class ModelRanks : public testing::TestWithParam<Trial> {
 protected:
  ModelRanks() {
    const auto& trial = GetParam();
    const Named values = whole_values(trial.options);
    one_ = run_model(trial.options, trial.shape, values, {});
    outcomes_.resize(static_cast<size_t>(trial.ranks));
    test::run_ranks({"shm", trial.ranks}, [&](comm::Group& group) {
      outcomes_[static_cast<size_t>(group.rank())] = run_model(trial.options, trial.shape, values, {&group});
    });
  }

  Outcome one_;
  std::vector<Outcome> outcomes_;
};

TEST_P(ModelRanks, ValuesAreThoseOfOneRank) {
  std::vector<at::Tensor> rows;
  for (const auto& outcome : outcomes_) rows.push_back(outcome.output);
  if (one_.output.dim() == 0) {
    for (const auto& loss : rows) {
      EXPECT_NEAR(loss.item<double>(), one_.output.item<double>(), 1e-10);
      EXPECT_TRUE(at::equal(loss, rows[0]));
    }
  } else {
    EXPECT_TRUE(at::allclose(at::cat(rows, 1), one_.output, 1e-9, 1e-11));
  }
}

TEST_P(ModelRanks, GradientsAreThoseOfOneRank) {
  for (const auto& decl : whole_params(GetParam().options)) {
    const at::Tensor& expected = one_.gradients.at(decl.name);
    if (decl.split == spec::Split::kNone) {  // replicated: the ranks' parts add up
      at::Tensor sum = at::zeros_like(expected);
      for (const auto& outcome : outcomes_) sum += outcome.gradients.at(decl.name);
      EXPECT_TRUE(at::allclose(sum, expected, 1e-8, 1e-11)) << decl.name;
      continue;
    }
    for (int rank = 0; rank < GetParam().ranks; ++rank) {
      const at::Tensor& actual = outcomes_[static_cast<size_t>(rank)].gradients.at(decl.name);
      EXPECT_TRUE(at::allclose(actual, part_of(expected, decl, rank, GetParam().ranks), 1e-8, 1e-11))
          << decl.name << " of rank " << rank;
    }
  }
}

test::TrialShape documents(std::vector<int64_t> lengths) {
  test::TrialShape shape;
  shape.documents = std::move(lengths);
  return shape;
}

spec::ModelOptions many_heads(spec::ModelOptions options, int64_t heads) {
  options.heads = heads;
  if (options.kv_heads != 0) options.kv_heads = heads;
  return options;
}

INSTANTIATE_TEST_SUITE_P(
    Trials, ModelRanks,
    testing::Values(Trial{"pixelDit", test::tiny_model(), {}},
                    Trial{"pixelDitOddRows", test::tiny_model(), {3, 1, 5, 4}},
                    Trial{"pixelDitMoreRanksThanRows", many_heads(test::tiny_model(), 4), {1, 1, 3, 2}, 4},
                    Trial{"llamaEvenTokens", test::tiny_language_model("llama", false), documents({3, 1, 4})},
                    Trial{"llamaOddTokens", test::tiny_language_model("llama", false), documents({3, 1, 5})},
                    Trial{"llamaTied", test::tiny_language_model("llama", true), documents({6, 1})},
                    Trial{"qwenTied", test::tiny_language_model("qwen2", true), documents({3, 1, 5})},
                    Trial{"qwenFourRanks", many_heads(test::tiny_language_model("qwen2", false), 4),
                          documents({5, 6}), 4},
                    Trial{"qwenOneToken", test::tiny_language_model("qwen2", true), documents({1})}),
    [](const auto& test) { return test.param.name; });

TEST(BuildModelTest, NamesHeadsThatCannotBeCut) {
  test::run_ranks({"shm", 3}, [](comm::Group& group) {
    try {
      (void)model::build_model(test::tiny_language_model("llama", false), {&group});
      ADD_FAILURE() << "no exception";
    } catch (const InvalidInput& error) {
      EXPECT_THAT(error.what(),
                  testing::HasSubstr("parallel.tp: expected a divisor of the model's 4 attention"));
    }
  });
}

}  // namespace
}  // namespace chiliad::layers
