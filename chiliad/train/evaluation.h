#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "chiliad/generate/picture_maker.h"
#include "chiliad/index/index.h"
#include "chiliad/layers/layer.h"
#include "chiliad/loader/run_inputs.h"
#include "chiliad/objective/validation.h"
#include "chiliad/parallel/mesh.h"
#include "chiliad/parallel/sharded_layer.h"
#include "chiliad/spec/run_file.h"
#include "chiliad/train/task.h"

namespace chiliad::train {

/// What an evaluation works on; everything outlives it.
struct EvaluationSetup {
  const spec::RunFile* run = nullptr;
  const index::Index* index = nullptr;
  const loader::RunInputs* inputs = nullptr;
  parallel::Mesh* mesh = nullptr;
  spec::Rates rates;
  std::vector<std::unique_ptr<layers::Layer>>* layers = nullptr;
  std::vector<std::unique_ptr<parallel::ShardedLayer>>* shards = nullptr;
};

/// Losses over the held-out items.
struct ValidationReport {
  double loss = 0.0;            ///< mean over the items, or tokens
  std::vector<double> by_time;  ///< from data to noise, of objectives whose items have a time; NaN: no item
};

/// Losses over the held-out items and pictures of the prompts, by the moving average where there is one, on
/// the layers that train. Every rank calls each function at the same place, between steps; parameters and
/// averages are what they were afterwards, to the bit.
class Evaluation {
 public:
  explicit Evaluation(const EvaluationSetup& setup);
  ~Evaluation();

  /// Told of every layer that is done, so that a long evaluation is seen to go on.
  void set_watcher(std::function<void()> alive) { alive_ = std::move(alive); }

  /// Mean over the held-out items, or tokens. Times, noise and captions are those of every other call and of
  /// every other run on these items, whatever its seed; no caption is dropped. Times of a diffusion are
  /// spread evenly over their density, evaluation.draws for each item.
  [[nodiscard]] ValidationReport validate();
  /// Makes the pictures of evaluation.prompts, shared by the ranks; the first one writes them as
  /// step-N.png into `folder`.
  void make_samples(int64_t step, const std::filesystem::path& folder);

 private:
  struct Sums;
  void plan_draws();
  void measure(loader::Batch& batch, Sums& sums);
  void measure_once(const loader::Batch& batch, Sums& sums);
  /// All layers, each whole while it is at work. batch: whether this rank has any.
  void forward(layers::Carry& carry, bool has_items);
  [[nodiscard]] const generate::PictureMaker& maker();

  EvaluationSetup setup_;
  spec::RunFile run_;  // nothing dropped, a seed that all runs share
  std::function<void()> alive_;
  std::unique_ptr<stepplan::Plan> plan_;
  std::map<uint64_t, std::vector<objective::ValidationDraw>> draws_;  // by the draw keys of the plan
  TimeQuantiles times_;
  std::unique_ptr<Task> task_;
  std::unique_ptr<generate::PictureMaker> maker_;
};

}  // namespace chiliad::train
