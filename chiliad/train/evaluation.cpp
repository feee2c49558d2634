#include "chiliad/train/evaluation.h"

#include <ATen/ATen.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "chiliad/base/error.h"
#include "chiliad/base/rng.h"
#include "chiliad/comm/group.h"
#include "chiliad/generate/picture_grid.h"
#include "chiliad/generate/sample.h"
#include "chiliad/image/encode.h"
#include "chiliad/io/file.h"
#include "chiliad/train/average_swap.h"

namespace chiliad::train {
namespace {

constexpr int kColumns = 8;
constexpr uint64_t kSampleSeed = 1;  // of every run, so that their pictures can be compared

spec::RunFile without_dropout(const spec::RunFile& run) {
  spec::RunFile made = run;
  made.objective.caption_dropout = 0.0;
  return made;
}

std::string bytes_of(const HostArray& picture) {
  return {reinterpret_cast<const char*>(picture.data()), static_cast<size_t>(picture.num_bytes())};
}

}  // namespace

Evaluation::Evaluation(const EvaluationSetup& setup) : setup_(setup), run_(without_dropout(*setup.run)) {
  task_ = make_task(run_, setup.mesh->tensor_parallel(), *setup.inputs);
  if (run_.data.held_out == 0) return;
  plan_ = std::make_unique<stepplan::Plan>(
      loader::open_plan(run_, *setup.index, *setup.inputs, stepplan::PlanPart::kHeldOut));
}

Evaluation::~Evaluation() = default;

double Evaluation::validation_loss() {
  CHILIAD_CHECK(plan_ != nullptr, "nothing is held out");
  auto options = loader::loader_options(run_, *setup_.inputs, setup_.rates, setup_.mesh->dp_index(),
                                        setup_.mesh->shape().dp());
  options.cache_bytes = 0;
  const int64_t steps = plan_->steps_per_epoch();
  loader::Loader loader(*setup_.index, *plan_, {}, 0, steps, std::move(options));
  const bool averaged = run_.optimizer.ema > 0.0;
  if (averaged) swap_averages(*setup_.shards);
  std::array<double, 2> sums{};  // loss, weight
  for (int64_t step = 0; step < steps; ++step) sums[0] += summed_loss(loader.next(), sums[1]);
  if (averaged) swap_averages(*setup_.shards);
  const auto all = comm::sum_over_ranks(setup_.mesh->world(), sums);
  return all[1] > 0.0 ? all[0] / all[1] : 0.0;
}

double Evaluation::summed_loss(const loader::RankStep& step, double& weight) {
  double sum = 0.0;
  for (const auto& batch : step.slots) {
    const bool has_items = !batch.items.empty();
    const auto slot = has_items ? task_->open(batch) : nullptr;
    layers::Carry carry;
    if (has_items) carry = slot->inputs();
    forward(carry, has_items);
    if (!has_items) continue;
    layers::Carry gradients;
    sum += slot->loss(carry, 1.0, gradients);
    if (setup_.mesh->place().tp == 0) weight += task_->actual(batch);  // its peers have the same
  }
  return sum;
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
  const auto side = static_cast<int32_t>(std::max(unit, run_.data.resolution / unit * unit));
  std::vector<generate::Request> requests;
  for (size_t round = 0; round < rounds; ++round) {
    const size_t i = (round * ranks + own) % prompts.size();
    requests.push_back({prompts[i], side, side, mix64(kSampleSeed ^ mix64(i))});
  }
  generate::SamplerOptions options;
  options.steps = static_cast<int>(run_.evaluation.solver_steps);
  options.guidance = run_.evaluation.guidance;
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
