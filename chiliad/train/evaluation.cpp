#include "chiliad/train/evaluation.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "chiliad/base/error.h"
#include "chiliad/base/rng.h"
#include "chiliad/comm/group.h"
#include "chiliad/generate/picture_grid.h"
#include "chiliad/generate/sample.h"
#include "chiliad/image/encode.h"
#include "chiliad/io/file.h"
#include "chiliad/spec/shape_stages.h"
#include "chiliad/train/average_swap.h"

namespace chiliad::train {
namespace {

constexpr int kColumns = 8;
constexpr uint64_t kSampleSeed = 1;  // of every run, so that their pictures can be compared
constexpr uint64_t kDrawSeed = 1;    // and their losses
constexpr int kTimeBins = 4;

spec::RunFile to_measure(const spec::RunFile& run) {
  spec::RunFile made = run;
  made.objective.caption_dropout = 0.0;
  made.run.seed = kDrawSeed;
  return made;
}

std::string bytes_of(const HostArray& picture) {
  return {reinterpret_cast<const char*>(picture.data()), static_cast<size_t>(picture.num_bytes())};
}

}  // namespace

Evaluation::Evaluation(const EvaluationSetup& setup) : setup_(setup), run_(to_measure(*setup.run)) {
  task_ = make_task(run_, setup.mesh->tensor_parallel(), *setup.inputs, &times_);
  if (run_.data.held_out == 0) return;
  plan_ = std::make_unique<stepplan::Plan>(
      loader::open_plan(run_, *setup.index, *setup.inputs, stepplan::PlanPart::kHeldOut));
  if (spec::draws_times(run_.model)) plan_draws();
}

Evaluation::~Evaluation() = default;

struct Evaluation::Sums {
  double loss = 0.0;
  double weight = 0.0;
  objective::LossByTime by_time{kTimeBins};
};

void Evaluation::plan_draws() {
  std::vector<uint64_t> keys;
  for (int64_t step = 0; step < plan_->steps_per_epoch(); ++step) {
    for (const auto& item : plan_->select(step, {}).items) keys.push_back(item.draw_key);
  }
  draws_ = objective::make_validation_draws(
      keys, {.seed = kDrawSeed, .draws_per_item = static_cast<int>(run_.evaluation.draws)});
  for (const auto& [key, draws] : draws_) {
    for (const auto& draw : draws) times_.emplace(draw.draw_key, draw.quantile);
  }
}

ValidationReport Evaluation::validate() {
  CHILIAD_CHECK(plan_ != nullptr, "nothing is held out");
  auto options = loader::loader_options(run_, *setup_.inputs, setup_.rates, setup_.mesh->dp_index(),
                                        setup_.mesh->shape().dp());
  options.cache_bytes = 0;
  const int64_t steps = plan_->steps_per_epoch();
  loader::Loader loader(*setup_.index, *plan_, {}, 0, steps, std::move(options));
  const bool averaged = run_.optimizer.ema > 0.0;
  if (averaged) swap_averages(*setup_.shards);
  Sums sums;
  for (int64_t step = 0; step < steps; ++step) {
    auto loaded = loader.next();
    for (auto& batch : loaded.slots) measure(batch, sums);
  }
  if (averaged) swap_averages(*setup_.shards);
  std::vector<double> own{sums.loss, sums.weight};
  own.insert(own.end(), sums.by_time.sums().begin(), sums.by_time.sums().end());
  const auto all = comm::sum_over_ranks(setup_.mesh->world(), own);
  std::copy(all.begin() + 2, all.end(), sums.by_time.sums().begin());
  return {all[1] > 0.0 ? all[0] / all[1] : 0.0,
          draws_.empty() ? std::vector<double>{} : sums.by_time.means()};
}

void Evaluation::measure(loader::Batch& batch, Sums& sums) {
  if (draws_.empty()) return measure_once(batch, sums);
  const auto keys = draw_keys(batch);
  for (size_t repeat = 0; repeat < static_cast<size_t>(run_.evaluation.draws); ++repeat) {
    for (size_t i = 0; i < keys.size(); ++i) batch.items[i].draw_key = draws_.at(keys[i])[repeat].draw_key;
    measure_once(batch, sums);
  }
}

void Evaluation::measure_once(const loader::Batch& batch, Sums& sums) {
  const bool has_items = !batch.items.empty();
  const auto slot = has_items ? task_->open(batch) : nullptr;
  layers::Carry carry;
  if (has_items) carry = slot->inputs();
  forward(carry, has_items);
  if (!has_items) return;
  layers::Carry gradients;
  sums.loss += slot->loss(carry, 1.0, gradients);
  const bool counts = setup_.mesh->place().tp == 0;  // its peers have the same items
  if (counts) sums.weight += task_->actual(batch);
  const auto losses = slot->item_losses();
  for (size_t i = 0; i < losses.size() && !times_.empty(); ++i) {
    const auto& item = batch.items[i];
    sums.by_time.add(times_.at(item.draw_key), losses[i], counts ? static_cast<double>(item.weight) : 0.0);
  }
}

void Evaluation::forward(layers::Carry& carry, bool has_items) {
  const at::NoGradGuard no_grad;
  auto& shards = *setup_.shards;
  for (size_t i = 0; i < shards.size(); ++i) {
    shards[i]->start_unshard();
    shards[i]->finish_unshard();
    if (has_items) (*setup_.layers)[i]->forward(carry);
    if (alive_) alive_();
    if (!shards[i]->decl().lends_params) shards[i]->reshard();
  }
  for (auto& shard : shards) {
    if (shard->decl().lends_params) shard->reshard();
  }
}

const generate::PictureMaker& Evaluation::maker() {
  if (maker_ == nullptr) {
    maker_ = generate::make_picture_maker(run_, [this](layers::Carry carry) {
      forward(carry, true);
      return carry.get("prediction");
    });
  }
  return *maker_;
}

void Evaluation::make_samples(int64_t step, const std::filesystem::path& folder) {
  const auto& prompts = run_.evaluation.prompts;
  const auto ranks = static_cast<size_t>(setup_.mesh->shape().dp());
  const auto own = static_cast<size_t>(setup_.mesh->dp_index());
  // Every rank makes as many: layers that ranks share are gathered by all of them together.
  const size_t rounds = (prompts.size() + ranks - 1) / ranks;
  const int64_t unit = spec::token_pixels(run_.model);
  const auto side =
      static_cast<int32_t>(std::max(unit, spec::last_stage(run_.data).resolution / unit * unit));
  std::vector<generate::Request> requests;
  for (size_t round = 0; round < rounds; ++round) {
    const size_t i = (round * ranks + own) % prompts.size();
    requests.push_back({prompts[i], side, side, mix64(kSampleSeed ^ mix64(i))});
  }
  generate::SamplerOptions options;
  options.steps = static_cast<int>(run_.evaluation.solver_steps);
  options.guidance = generate::guidance_options(run_.evaluation);
  if (run_.evaluation.embedded_guidance > 0.0) options.embedded_guidance = run_.evaluation.embedded_guidance;
  const bool averaged = run_.optimizer.ema > 0.0;
  if (averaged) swap_averages(*setup_.shards);
  const auto made = generate::sample(maker(), requests, options, {});
  if (averaged) swap_averages(*setup_.shards);
  std::vector<HostArray> pictures;
  for (size_t round = 0; round < rounds; ++round) {
    for (const auto& bytes : comm::gather_texts(setup_.mesh->world(), bytes_of(made[round]))) {
      if (pictures.size() == prompts.size()) break;
      HostArray picture(DType::kU8, Shape{side, side, 3});
      CHILIAD_CHECK_EQ(static_cast<int64_t>(bytes.size()), picture.num_bytes());
      std::memcpy(picture.data(), bytes.data(), bytes.size());
      pictures.push_back(std::move(picture));
    }
  }
  if (setup_.mesh->rank() != 0) return;
  const int columns = std::min(kColumns, static_cast<int>(pictures.size()));
  io::make_folders(folder);
  io::write_atomic(folder / fmt::format("step-{}.png", step),
                   image::encode_png(generate::make_grid(pictures, columns, 1)));
}

}  // namespace chiliad::train
