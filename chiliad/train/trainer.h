#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chiliad/base/clock.h"
#include "chiliad/checkpoint/reader.h"
#include "chiliad/checkpoint/snapshot.h"
#include "chiliad/index/index.h"
#include "chiliad/layers/layer.h"
#include "chiliad/loader/loader.h"
#include "chiliad/loader/run_inputs.h"
#include "chiliad/observe/metrics.h"
#include "chiliad/observe/time_account.h"
#include "chiliad/observe/trace_recorder.h"
#include "chiliad/parallel/mesh.h"
#include "chiliad/parallel/sharded_layer.h"
#include "chiliad/schedule/executor.h"
#include "chiliad/spec/run_file.h"
#include "chiliad/spec/work.h"
#include "chiliad/stepplan/bad_rates.h"
#include "chiliad/stepplan/plan.h"
#include "chiliad/topology/rank_binder.h"
#include "chiliad/train/evaluation.h"
#include "chiliad/train/step_stage.h"

namespace chiliad::train {

/// What a trainer needs; everything outlives it.
struct TrainerSetup {
  const spec::RunFile* run = nullptr;
  const index::Index* index = nullptr;
  parallel::Mesh* mesh = nullptr;
  const Clock* clock = nullptr;
  const checkpoint::Checkpoint* resume = nullptr;  ///< null: from the beginning
  stepplan::Journal journal;                       ///< agreed so far, also beyond the checkpoint
  spec::Rates rates;
  const topology::RankBinder* binder = nullptr;  ///< of loader threads; null: they run anywhere
  observe::TraceRecorder* trace = nullptr;       ///< told what the steps do that it wants; null: none
};

/// One step, done.
struct StepReport {
  int64_t step = 0;  ///< its number, from 0
  int64_t epoch = 0;
  double lr = 0.0;
  Agreement agreement;
  bool updated = false;
  int64_t num_items = 0;
  Digest items;  ///< digest of the step's items
  double predicted_seconds = 0.0;
  std::vector<stepplan::Amendment> amendments;  ///< newly agreed, to be made durable before the next step
  std::string data_excess;  ///< why the run must stop, once they are: too much of the data is bad
  observe::TimeAccount::Report account;
  observe::ComponentSeconds components;
};

/// Told of phases, e.g. for the progress page: (step, instruction index, instruction).
using StepWatcher = std::function<void(int64_t, int32_t, const schedule::Instruction&)>;

/// The training of one rank: plan, loader, model, optimizer. One thread.
class Trainer {
 public:
  explicit Trainer(TrainerSetup setup);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  /// Runs one step. `stop_requested` is shared with all ranks; they all see it in the report.
  [[nodiscard]] StepReport run_step(bool stop_requested, const StepWatcher& watcher);
  [[nodiscard]] int64_t next_step() const { return next_step_; }
  [[nodiscard]] bool finished() const { return next_step_ >= setup_.run->run.steps; }

  /// Boxes that this rank owns: weights, moments, average. They change in the next optimizer update only.
  [[nodiscard]] std::vector<checkpoint::OwnedBox> owned_boxes();
  /// State of the run as JSON: step, updates, cursor, journal. The same on every rank.
  [[nodiscard]] std::string state() const;
  /// See StepStage::set_before_update.
  void set_before_update(std::function<void()> wait) { stage_->set_before_update(std::move(wait)); }

  /// Compares parameters that several ranks have; see consistency.h.
  void check_parameters();
  /// Of all ranks' parameters, the same in every layout. Every rank asks at the same place.
  [[nodiscard]] uint64_t parameters_digest();
  /// Part of the digest of the program of the step under way, or of the last one; alike on all ranks.
  [[nodiscard]] uint64_t program() const { return program_; }

  /// Losses and pictures between steps; made when it is first asked for.
  [[nodiscard]] Evaluation& evaluation();

  [[nodiscard]] observe::TimeAccount& account() { return account_; }
  [[nodiscard]] const stepplan::Plan& plan() const { return *plan_; }
  [[nodiscard]] loader::LoaderStats loader_stats() const { return loader_->stats(); }
  [[nodiscard]] std::vector<std::unique_ptr<parallel::ShardedLayer>>& shards() { return shards_; }
  /// Bytes of parameters, gradients, optimizer state and the buffers of exchanges, as they are now.
  [[nodiscard]] int64_t state_bytes() const;

 private:
  struct ProvenProgram {
    schedule::Program program;
    Digest digest;
  };

  void build_model();
  /// Those of model.weights, or drawn.
  void set_first_weights();
  void load_checkpoint();
  void start_loader();
  /// The program for that many slots, proven when it is first asked for.
  [[nodiscard]] const ProvenProgram& program_for(int32_t num_slots);
  [[nodiscard]] std::vector<stepplan::Amendment> agree_on_verdicts(const loader::RankStep& step);
  /// Names what tensor-parallel ranks loaded otherwise than their peers.
  void explain_other_data(std::span<const uint64_t> consumed);
  [[nodiscard]] double step_flops(const loader::RankStep& step) const;

  TrainerSetup setup_;
  spec::LayerTable table_;
  observe::TimeAccount account_;
  loader::RunInputs inputs_;  // shared with the loader
  std::unique_ptr<stepplan::Plan> plan_;
  std::unique_ptr<loader::Loader> loader_;
  std::vector<std::unique_ptr<layers::Layer>> layers_;
  std::vector<bool> trained_;  // of each layer
  parallel::LayerPools pools_;
  std::vector<std::unique_ptr<parallel::ShardedLayer>> shards_;
  std::unique_ptr<StepStage> stage_;
  std::unique_ptr<Evaluation> evaluation_;
  std::map<int32_t, ProvenProgram> programs_;  // by number of slots
  uint64_t program_ = 0;
  int64_t next_step_ = 0;
  int64_t num_updates_ = 0;
  int64_t items_seen_ = 0;
  int64_t bad_seen_ = 0;
  stepplan::SampleGroups groups_;
  stepplan::BadRates bad_rates_;
  int64_t skipped_in_a_row_ = 0;
};

}  // namespace chiliad::train
