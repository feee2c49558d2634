#include "chiliad/planner/recompute_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "chiliad/base/error.h"
#include "chiliad/planner/state_memory.h"
#include "chiliad/spec/work.h"

namespace chiliad::planner {
namespace {

using spec::Recompute;

spec::RunFile run_of(int64_t depth) {
  spec::RunFile file;
  file.model.depth = depth;
  return file;
}

const std::vector<spec::BatchShape>& shapes() {
  static const std::vector<spec::BatchShape> kShapes{{32, 64, 64}, {32, 60, 64}};
  return kShapes;
}

RecomputeChoice choose(spec::RunFile file, int64_t budget) {
  file.parallel.recompute = "auto";
  file.parallel.memory_budget = budget;
  return choose_recompute(spec::make_layer_table(file.model), file, shapes());
}

RecomputeChoice uniform(spec::RunFile file, const std::string& mode) {
  file.parallel.recompute = mode;
  return choose_recompute(spec::make_layer_table(file.model), file, shapes());
}

TEST(RecomputeChoiceTest, KeepsEverythingWhereItFits) {
  const auto file = run_of(6);
  const auto none = uniform(file, "none");
  EXPECT_EQ(choose(file, none.peak()).modes, none.modes);
}

TEST(RecomputeChoiceTest, FitsEveryBudgetBetween) {
  const auto file = run_of(6);
  const int64_t most = uniform(file, "none").peak();
  const int64_t least = uniform(file, "layers").peak();
  double before = 0.0;
  for (int i = 0; i <= 20; ++i) {
    const int64_t budget = most - (most - least) * i / 20;
    const auto choice = choose(file, budget);
    EXPECT_LE(choice.peak(), budget);
    EXPECT_GE(choice.extra_flops, before) << budget;
    before = choice.extra_flops;
  }
}

TEST(RecomputeChoiceTest, CheapValuesGoFirst) {
  const auto file = run_of(6);
  const auto choice = choose(file, uniform(file, "selective").peak());
  EXPECT_EQ(choice.extra_flops, 0.0);
}

TEST(RecomputeChoiceTest, TheLastLayerKeepsAll) {
  const auto file = run_of(2);
  EXPECT_EQ(choose(file, uniform(file, "layers").peak()).modes.back(), Recompute::kNone);
  EXPECT_EQ(uniform(file, "layers").modes.back(), Recompute::kNone);
}

TEST(RecomputeChoiceTest, RefusesWhatDoesNotFit) {
  const auto file = run_of(2);
  try {
    static_cast<void>(choose(file, 1 << 20));
    FAIL() << "not refused";
  } catch (const InvalidInput& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("parallel.memory_budget: expected at least"), std::string::npos) << text;
    EXPECT_NE(text.find("data.micro_batch_items"), std::string::npos) << text;
  }
}

TEST(RecomputeChoiceTest, WhatARefusalNamesIsEnough) {
  const auto file = run_of(3);
  try {
    static_cast<void>(choose(file, 1 << 20));
    FAIL() << "not refused";
  } catch (const InvalidInput& error) {
    const std::string text = error.what();
    const int64_t least = std::stoll(text.substr(text.find("at least ") + 9)) << 20;
    EXPECT_LE(choose(file, least).peak(), least) << text;
  }
}

TEST(RecomputeChoiceTest, CountsTheModes) {
  EXPECT_EQ(uniform(run_of(2), "selective").to_string(), "1 none, 5 selective");
}

/// Work made again, by the rates that the choice goes by.
double seconds_again(const spec::LayerTable& table, const RecomputeModes& modes) {
  const auto rates = spec::rates_of({});
  double sum = 0.0;
  for (size_t i = 0; i < modes.size(); ++i) {
    spec::Work work = table.layers[i].forward(shapes()[0]);
    if (modes[i] == Recompute::kLayers) sum += rates.seconds(work);
    if (modes[i] == Recompute::kSelective) sum += 0.5 * work.elementwise / rates.elementwise_per_s;
  }
  return sum;
}

/// The least of all choices that fit.
double least_seconds(const spec::LayerTable& table, const spec::RunFile& file, int64_t budget) {
  const int64_t state = state_memory(table, file).training();
  RecomputeModes modes(table.layers.size(), Recompute::kNone);
  double least = std::numeric_limits<double>::infinity();
  for (bool more = true; more;) {
    const int64_t peak = state + activation_memory(table, file, shapes()[0], modes).peak;
    if (peak <= budget) least = std::min(least, seconds_again(table, modes));
    more = false;
    for (size_t i = 0; i + 1 < modes.size() && !more; ++i) {
      more = modes[i] != Recompute::kLayers;
      modes[i] = more ? static_cast<Recompute>(static_cast<int>(modes[i]) + 1) : Recompute::kNone;
    }
  }
  return least;
}

TEST(RecomputeChoiceTest, IsNearTheBestOfAllChoices) {
  const auto file = run_of(3);
  const auto table = spec::make_layer_table(file.model);
  const int64_t most = uniform(file, "none").peak();
  const int64_t least = uniform(file, "layers").peak();
  const double block = spec::rates_of({}).seconds(table.layers[4].forward(shapes()[0]));
  for (int i = 2; i < 8; i += 2) {
    const int64_t budget = most - (most - least) * i / 8;
    const double best = least_seconds(table, file, budget);
    const double chosen = seconds_again(table, choose(file, budget).modes);
    EXPECT_LE(chosen, best + block) << i;  // what a greedy choice of whole blocks may miss: one of them
  }
}

}  // namespace
}  // namespace chiliad::planner
