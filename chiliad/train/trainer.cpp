#include "chiliad/train/trainer.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include <algorithm>

#include "chiliad/base/error.h"
#include "chiliad/base/json_text.h"
#include "chiliad/base/log.h"
#include "chiliad/base/planted.h"
#include "chiliad/device/tensor.h"
#include "chiliad/model/build_model.h"
#include "chiliad/model/load_weights.h"
#include "chiliad/optim/learning_rate.h"
#include "chiliad/spec/trained_work.h"
#include "chiliad/train/consistency.h"
#include "chiliad/train/initial_weights.h"
#include "chiliad/train/injected_delay.h"
#include "chiliad/train/step_trace.h"
#include "chiliad/weights/key_tables/model_keys.h"
#include "chiliad/weights/weight_source.h"

namespace chiliad::train {
namespace {

constexpr int64_t kMaxSkippedUpdates = 20;

/// Charges instructions to the rows of the time account and to components, and tells the progress page.
class StepClock final : public schedule::Watcher {
 public:
  StepClock(observe::TimeAccount& account, const Clock& clock, const spec::LayerTable& table, int64_t step,
            const StepWatcher& watcher, StepTrace trace)
      : account_(account),
        clock_(clock),
        table_(table),
        step_(step),
        watcher_(watcher),
        trace_(std::move(trace)) {}

  void before(int32_t index, const schedule::Instruction& instruction) override {
    if (watcher_) watcher_(step_, index, instruction);
    trace_.before();
    start_ = clock_.now();
    scope_.emplace(account_, row_of(instruction.op));
    injected_delay(row_of(instruction.op));
  }
  void after(int32_t, const schedule::Instruction& instruction) override {
    scope_.reset();
    charge_component(instruction);
    trace_.after(instruction);
  }
  [[nodiscard]] const observe::ComponentSeconds& components() const { return components_; }

 private:
  void charge_component(const schedule::Instruction& instruction) {
    const bool forward = instruction.op == schedule::Op::kForward;
    if (!forward && instruction.op != schedule::Op::kBackward) return;
    auto& component = components_[table_.layers[static_cast<size_t>(instruction.layer)].component];
    (forward ? component.forward : component.backward) += to_seconds(clock_.now() - start_);
  }
  static observe::Row row_of(schedule::Op op) {
    switch (op) {
      case schedule::Op::kLoad:
        return observe::Row::kHostToDevice;
      case schedule::Op::kForward:
      case schedule::Op::kLoss:
        return observe::Row::kForward;
      case schedule::Op::kBackward:
        return observe::Row::kBackward;
      case schedule::Op::kOptimize:
        return observe::Row::kOptimizer;
      default:
        return observe::Row::kCommunication;
    }
  }

  observe::TimeAccount& account_;
  const Clock& clock_;
  const spec::LayerTable& table_;
  int64_t step_;
  const StepWatcher& watcher_;
  StepTrace trace_;
  Nanoseconds start_{0};
  observe::ComponentSeconds components_;
  std::optional<observe::TimeAccount::Scope> scope_;
};

nlohmann::json verdicts_to_json(const loader::RankStep& step) {
  nlohmann::json list = nlohmann::json::array();
  for (const auto& verdict : step.verdicts)
    list.push_back({{"sample", verdict.sample}, {"reason", verdict.reason}});
  return list;
}

}  // namespace

Trainer::Trainer(TrainerSetup setup)
    : setup_(std::move(setup)),
      table_(spec::make_layer_table(setup_.run->model)),
      account_(*setup_.clock),
      groups_(*setup_.index),
      bad_rates_(stepplan::bad_rate_options(setup_.run->data)) {
  const auto& run = *setup_.run;
  inputs_ = loader::open_inputs(run, *setup_.index);
  plan_ = std::make_unique<stepplan::Plan>(loader::open_plan(run, *setup_.index, inputs_));
  build_model();
  if (setup_.resume != nullptr) load_checkpoint();
  check_parameters();
  stage_ = std::make_unique<StepStage>(run, layers_, shards_, *setup_.mesh, inputs_);
  stage_->set_on_other_data([this](std::span<const uint64_t> consumed) { explain_other_data(consumed); });
  start_loader();
}

Trainer::~Trainer() = default;

void Trainer::build_model() {
  const auto& run = *setup_.run;
  layers_ = model::build_model(run.model, setup_.mesh->tensor_parallel());
  int64_t largest_gradient = 0;
  for (const auto& layer : layers_) {
    if (!run.optimizer.trains(layer->decl().component)) continue;
    largest_gradient = std::max(largest_gradient, layer->decl().num_params());
  }
  const at::ScalarType compute = device::compute_type(run.parallel.compute);
  pools_ = {parallel::BufferPool(compute),
            parallel::BufferPool(setup_.mesh->shard_reduce(), largest_gradient, compute)};
  for (size_t i = 0; i < layers_.size(); ++i) {
    const auto& decl = table_.layers[i];
    parallel::ShardOptions options;
    options.trained = run.optimizer.trains(decl.component);
    options.compute = compute;
    options.keep = !run.parallel.reshard_after_forward;
    options.average = options.trained && run.optimizer.ema > 0.0;
    trained_.push_back(options.trained);
    shards_.push_back(
        std::make_unique<parallel::ShardedLayer>(*layers_[i], decl, *setup_.mesh, pools_, options));
  }
  if (setup_.resume == nullptr) set_first_weights();
}

void Trainer::set_first_weights() {
  const auto& run = *setup_.run;
  if (run.model.weights.empty()) {
    for (auto& shard : shards_) set_initial_weights(*shard, run.run.seed);
    return;
  }
  const auto source = weights::WeightSource::open(run.model.weights);
  const model::WeightReader reader(table_, source, weights::model_keys(run.model));
  for (auto& shard : shards_)
    set_weights(*shard, [&](const spec::ParamDecl& param) { return reader.read(param, at::kFloat); });
}

void Trainer::load_checkpoint() {
  const auto& ckpt = *setup_.resume;
  auto read = [&](const std::string& section, const std::string& name, const Box& box, float* out) {
    const auto* tensor = ckpt.find(section, name);
    if (tensor == nullptr) {
      throw CorruptData(ckpt.path().string(), fmt::format("has no tensor {}/{}", section, name));
    }
    const std::span<float> values(out, static_cast<size_t>(box.count()));
    ckpt.read(*tensor, box, std::as_writable_bytes(values));
  };
  for (auto& shard : shards_) {
    for (const auto& piece : shard->layout().shard_pieces()) {
      read("model", piece.param->name, piece.box, shard->shard_params() + piece.offset);
    }
    if (!shard->trained()) continue;
    for (const auto& piece : shard->layout().owned_pieces()) {
      read("optim", "exp_avg." + piece.param->name, piece.box, shard->exp_avg() + piece.offset);
      read("optim", "exp_avg_sq." + piece.param->name, piece.box, shard->exp_avg_sq() + piece.offset);
      if (shard->average() != nullptr)
        read("ema", piece.param->name, piece.box, shard->average() + piece.offset);
    }
  }
  for (auto& shard : shards_) shard->publish();
  const auto state = parse_json<nlohmann::json>(ckpt.state());
  num_updates_ = state.at("updates").get<int64_t>();
  items_seen_ = state.at("items_seen").get<int64_t>();
  bad_seen_ = state.at("bad_seen").get<int64_t>();
  if (state.contains("bad_rates"))
    bad_rates_ = stepplan::BadRates::from_json(json_text(state.at("bad_rates")),
                                               stepplan::bad_rate_options(setup_.run->data));
  const auto cursor = stepplan::Cursor::from_json(json_text(state.at("cursor")));
  plan_->check_resumable(cursor);
  next_step_ = cursor.next_step;
  const auto saved = stepplan::Journal::from_jsonl(state.at("journal").get<std::string>());
  stepplan::Journal journal = saved;
  for (const auto& amendment : setup_.journal.amendments()) journal.add(amendment);
  setup_.journal = journal;
}

void Trainer::start_loader() {
  const auto& run = *setup_.run;
  auto options =
      loader::loader_options(run, inputs_, setup_.rates, setup_.mesh->dp_index(), setup_.mesh->shape().dp());
  const topology::RankBinder unbound;
  const auto scope = (setup_.binder != nullptr ? *setup_.binder : unbound).loading();
  loader_ = std::make_unique<loader::Loader>(*setup_.index, *plan_, setup_.journal, next_step_,
                                             std::max(next_step_, run.run.steps), options);
}

const Trainer::ProvenProgram& Trainer::program_for(int32_t num_slots) {
  const auto found = programs_.find(num_slots);
  if (found != programs_.end()) return found->second;
  schedule::ProgramOptions options;
  options.num_layers = static_cast<int32_t>(layers_.size());
  options.num_slots = num_slots;
  options.sharded = setup_.mesh->shape().dp_shard > 1;
  options.keep = !setup_.run->parallel.reshard_after_forward;
  options.ahead = static_cast<int32_t>(setup_.run->parallel.prefetch_layers);
  options.overlap = setup_.run->parallel.overlap;
  options.tensor_parallel = setup_.mesh->shape().tp > 1;
  for (const auto& shard : shards_) {
    options.trained.push_back(shard->trained());
    options.lent.push_back(shard->decl().lends_params);
  }
  auto program = schedule::make_program(options);
  schedule::check(program, options);
  // Communicates as the others' do.
  if (planted_bug("other_program") && setup_.mesh->rank() == 1) ++program.num_layers;
  const Digest digest = program.digest();
  return programs_.emplace(num_slots, ProvenProgram{std::move(program), digest}).first->second;
}

StepReport Trainer::run_step(bool stop_requested, const StepWatcher& watcher) {
  const auto& run = *setup_.run;
  loader::RankStep loaded;
  auto* trace = setup_.trace != nullptr && setup_.trace->wants(next_step_) ? setup_.trace : nullptr;
  {
    const observe::TraceScope span(trace, *setup_.clock,
                                   {.name = "wait for data", .track = observe::kStepTrack});
    const observe::TimeAccount::Scope scope(account_, observe::Row::kDataWait);
    loaded = loader_->next();
    injected_delay(observe::Row::kDataWait);
  }
  CHILIAD_CHECK_EQ(loaded.step, next_step_);
  StepReport report;
  report.step = loaded.step;
  report.epoch = loaded.epoch;
  report.num_items = loaded.num_items;
  report.items = loaded.digest;
  const double flops = step_flops(loaded);
  report.predicted_seconds = loaded.predicted_work;
  report.lr = optim::learning_rate(run.optimizer, loaded.step, run.run.steps);

  const auto& proven = program_for(static_cast<int32_t>(loaded.slots.size()));
  program_ = proven.digest.low;
  const int64_t every = run.observe.check_every;
  const bool check = every > 0 && (report.step + 1) % every == 0;
  maybe_flip_a_bit(shards_, *setup_.mesh, report.step);
  maybe_spoil_data(*setup_.mesh, loaded);
  stage_->begin(std::move(loaded),
                {report.lr, num_updates_ + 1, flops, proven.digest, stop_requested, check});
  StepClock step_clock(account_, *setup_.clock, table_, report.step, watcher,
                       StepTrace(trace, *setup_.clock));
  schedule::execute(proven.program, *stage_, step_clock);
  report.components = step_clock.components();

  report.agreement = stage_->agreement();
  report.updated = stage_->updated();
  if (report.updated) ++num_updates_;
  skipped_in_a_row_ = report.updated ? 0 : skipped_in_a_row_ + 1;
  if (!report.agreement.finite && skipped_in_a_row_ > kMaxSkippedUpdates) {
    throw CorruptData(
        fmt::format("step {}", report.step),
        fmt::format(
            "gradients were not finite for {} steps in a row. Lower optimizer.lr, or look at the data "
            "with `chiliad data verify`",
            skipped_in_a_row_));
  }
  ++next_step_;
  items_seen_ += report.num_items;
  if (report.agreement.num_verdicts > 0.0) {
    const observe::TimeAccount::Scope scope(account_, observe::Row::kCommunication);
    report.amendments = agree_on_verdicts(stage_->step());
  }
  const auto excess = bad_rates_.add_step(stage_->step().seen, report.amendments, groups_);
  if (excess.has_value())
    report.data_excess = stepplan::excess_text(*excess, setup_.journal, *setup_.index, groups_);
  return report;
}

Evaluation& Trainer::evaluation() {
  if (evaluation_ == nullptr) {
    EvaluationSetup setup;
    setup.run = setup_.run;
    setup.index = setup_.index;
    setup.inputs = &inputs_;
    setup.mesh = setup_.mesh;
    setup.rates = setup_.rates;
    setup.layers = &layers_;
    setup.shards = &shards_;
    evaluation_ = std::make_unique<Evaluation>(setup);
  }
  return *evaluation_;
}

void Trainer::check_parameters() {
  train::check_parameters(shards_, *setup_.mesh, next_step_);
}

uint64_t Trainer::parameters_digest() {
  return train::parameters_digest(shards_, *setup_.mesh);
}

std::vector<stepplan::Amendment> Trainer::agree_on_verdicts(const loader::RankStep& step) {
  std::vector<stepplan::Amendment> fresh;
  for (const auto& text : comm::gather_texts(setup_.mesh->world(), json_text(verdicts_to_json(step)))) {
    for (const auto& entry : parse_json<nlohmann::json>(text)) {
      const auto sample = entry.at("sample").get<int64_t>();
      // Loaded ahead, before the sample was agreed to be bad: nothing new.
      if (setup_.journal.weight(sample, step.step) == 0.0F) continue;
      // From the step after: a replay of this step finds the item bad again by itself, with the same
      // rounding.
      fresh.push_back({step.step + 1, sample, entry.at("reason").get<std::string>()});
    }
  }
  if (fresh.empty()) return fresh;
  std::sort(fresh.begin(), fresh.end(), [](const auto& a, const auto& b) { return a.sample < b.sample; });
  // Tensor-parallel ranks load the same items and find the same.
  const auto same = [](const auto& a, const auto& b) { return a.sample == b.sample; };
  fresh.erase(std::unique(fresh.begin(), fresh.end(), same), fresh.end());
  for (const auto& amendment : fresh) setup_.journal.add(amendment);
  bad_seen_ += static_cast<int64_t>(fresh.size());
  const auto& data = setup_.run->data;
  const auto& first = fresh.front();
  if (data.on_bad_item == "stop") {
    throw CorruptData(setup_.index->key(first.sample),
                      fmt::format("{}. Set data.on_bad_item: skip to go on without it", first.reason));
  }
  loader_->amend(fresh);
  return fresh;
}

void Trainer::explain_other_data(std::span<const uint64_t> consumed) {
  const auto& step = stage_->step();
  refuse_other_data(step, consumed, *setup_.index, *setup_.mesh,
                    [&](size_t slot, size_t item) { return loader_->digest_again(step.slots[slot], item); });
}

double Trainer::step_flops(const loader::RankStep& step) const {
  double flops = 0.0;
  const int64_t side = spec::token_pixels(setup_.run->model);
  for (const auto& batch : step.slots) {
    for (size_t i = 0; i < batch.items.size(); ++i) {
      const stepplan::Bucket bucket = batch.shape_of(i);
      const spec::BatchShape shape{1, (bucket.width / side) * (bucket.height / side), batch.token_counts[i]};
      flops += spec::trained_work(table_, shape, trained_).flops();
    }
  }
  return flops;
}

std::vector<checkpoint::OwnedBox> Trainer::owned_boxes() {
  std::vector<checkpoint::OwnedBox> boxes;
  auto add = [&](const char* section, const std::string& name, const parallel::Piece& piece,
                 const float* data) {
    boxes.push_back({section, name, DType::kF32, piece.param->shape, piece.box,
                     reinterpret_cast<const std::byte*>(data)});
  };
  for (auto& shard : shards_) {
    for (const auto& piece : shard->layout().owned_pieces()) {
      if (piece.replicated && setup_.mesh->place().tp > 0) continue;  // the first of the copies is written
      const std::string& name = piece.param->name;
      add("model", name, piece, shard->owned_params() + piece.offset);
      if (!shard->trained()) continue;
      add("optim", "exp_avg." + name, piece, shard->exp_avg() + piece.offset);
      add("optim", "exp_avg_sq." + name, piece, shard->exp_avg_sq() + piece.offset);
      if (shard->average() != nullptr) add("ema", name, piece, shard->average() + piece.offset);
    }
  }
  return boxes;
}

int64_t Trainer::state_bytes() const {
  int64_t sum = pools_.params.num_bytes() + pools_.gradients.num_bytes();
  for (const auto& shard : shards_) sum += shard->num_bytes();
  return sum;
}

std::string Trainer::state() const {
  const auto cursor = plan_->cursor(next_step_, setup_.journal);
  const nlohmann::json state{{"step", next_step_},
                             {"updates", num_updates_},
                             {"items_seen", items_seen_},
                             {"bad_seen", bad_seen_},
                             {"bad_rates", parse_json<nlohmann::json>(bad_rates_.to_json())},
                             {"seed", setup_.run->run.seed},
                             {"cursor", parse_json<nlohmann::json>(cursor.to_json())},
                             {"journal", setup_.journal.to_jsonl()}};
  return json_text(state);
}

}  // namespace chiliad::train
