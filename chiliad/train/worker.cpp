#include "chiliad/train/worker.h"

#include <fmt/chrono.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <map>
#include <memory>
#include <numeric>
#include <string_view>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/base/error_kinds.h"
#include "chiliad/base/json_text.h"
#include "chiliad/base/log.h"
#include "chiliad/comm/meeting.h"
#include "chiliad/device/memory_meter.h"
#include "chiliad/device/tensor.h"
#include "chiliad/io/file.h"
#include "chiliad/ipc/child_process.h"
#include "chiliad/ipc/progress_page.h"
#include "chiliad/loader/run_inputs.h"
#include "chiliad/loader/wait_alarm.h"
#include "chiliad/observe/cpu_time.h"
#include "chiliad/observe/fma_peak.h"
#include "chiliad/observe/metrics.h"
#include "chiliad/observe/trace_recorder.h"
#include "chiliad/ops/cpu/parallel.h"
#include "chiliad/topology/rank_binder.h"
#include "chiliad/train/consistency.h"
#include "chiliad/train/injected_delay.h"
#include "chiliad/train/mesh_bytes.h"
#include "chiliad/train/parent_link.h"
#include "chiliad/train/snapshotter.h"
#include "chiliad/train/trainer.h"

namespace chiliad::train {
namespace {

using Json = nlohmann::json;

constexpr int kSlots = 2;
constexpr int64_t kStateRoom = 4 << 20;
constexpr int64_t kStartBytes = 256 << 10;
constexpr int64_t kMaxJournalBytes = 256 << 20;

ipc::Phase phase_of(schedule::Op op) {
  switch (op) {
    case schedule::Op::kLoad:
      return ipc::Phase::kHostToDevice;
    case schedule::Op::kForward:
    case schedule::Op::kLoss:
      return ipc::Phase::kForward;
    case schedule::Op::kBackward:
      return ipc::Phase::kBackward;
    case schedule::Op::kOptimize:
      return ipc::Phase::kOptimizer;
    default:
      return ipc::Phase::kCommunication;
  }
}

#ifdef CHILIAD_FAULTS
/// CHILIAD_KILL_AT=rank:step:place kills this process there, CHILIAD_STOP_AT stops it; for the tests of lost
/// ranks. A place is a phase or the name of an instruction.
void maybe_signal(int rank, int64_t step, std::string_view place) {
  static const char* const kill = std::getenv("CHILIAD_KILL_AT");
  static const char* const stop = std::getenv("CHILIAD_STOP_AT");
  if (kill == nullptr && stop == nullptr) return;
  const auto here = fmt::format("{}:{}:{}", rank, step, place);
  if (kill != nullptr && here == kill) std::raise(SIGKILL);
  if (stop != nullptr && here == stop) std::raise(SIGSTOP);
}
#else
void maybe_signal(int, int64_t, std::string_view) {}
#endif

stepplan::Journal read_journal(const std::string& path) {
  if (path.empty() || !io::stat_file(path).has_value()) return {};
  return stepplan::Journal::from_jsonl(io::read_text(path, kMaxJournalBytes));
}

/// The ranks that an error is about.
std::vector<int> ranks_of(const std::exception& error) {
  if (const auto* odd = dynamic_cast<const RankMismatch*>(&error)) return odd->ranks();
  const auto* lost = dynamic_cast<const PeerLost*>(&error);
  return lost == nullptr || lost->rank() < 0 ? std::vector<int>{} : std::vector<int>{lost->rank()};
}

/// Sums steps into one line of metrics.
class MetricsSum {
 public:
  void add(const StepReport& report) {
    line_.step = report.step + 1;
    line_.epoch = report.epoch;
    line_.lr = report.lr;
    line_.grad_norm = report.agreement.grad_norm;
    loss_ += report.agreement.loss * report.agreement.actual_weight;
    weight_ += report.agreement.actual_weight;
    actual_ += report.agreement.actual_items;
    line_.items += report.num_items;
    line_.flops += report.agreement.flops;
    line_.wall += report.account.wall;
    line_.other += report.account.other;
    for (size_t row = 0; row < line_.seconds.size(); ++row) line_.seconds[row] += report.account.seconds[row];
    for (const auto& [name, seconds] : report.components) line_.components[name] += seconds;
    imbalance_ += report.agreement.imbalance;
    ++steps_;
  }
  /// What came before is not of the first step.
  void start(const parallel::Mesh& mesh) {
    count(mesh);
    line_ = {};
  }
  /// CPU time and traffic since the last call.
  void count(const parallel::Mesh& mesh) {
    const double cpu = observe::process_cpu_seconds();
    line_.cpu += cpu - std::exchange(cpu_, cpu);
    for (const auto& group : mesh.traffic()) {
      int64_t& before = sent_[group.name];
      const int64_t bytes = group.traffic.bytes_sent - std::exchange(before, group.traffic.bytes_sent);
      line_.sent[group.name] += bytes;
      line_.sent_by_tier[comm::tier_name(group.tier)] += bytes;
    }
  }
  [[nodiscard]] bool empty() const { return steps_ == 0; }
  void set_loader(observe::LoaderMetrics loader) { line_.loader = std::move(loader); }
  void set_validation(ValidationReport report) {
    line_.validation_loss = report.loss;
    line_.validation_loss_by_time = std::move(report.by_time);
  }
  [[nodiscard]] bool has_validation_loss() const { return line_.validation_loss.has_value(); }
  [[nodiscard]] std::string take(int64_t num_steps, int64_t peak_memory, double peak_flops) {
    line_.peak_memory = peak_memory;
    line_.peak_flops = peak_flops;
    if (peak_flops > 0.0 && line_.wall > 0.0) line_.mfu = line_.flops / line_.wall / peak_flops;
    line_.steps = num_steps;
    line_.loss = weight_ > 0.0 ? loss_ / weight_ : 0.0;
    line_.bad_items = line_.items - static_cast<int64_t>(actual_);
    line_.imbalance = imbalance_ / static_cast<double>(steps_);
    line_.items_per_s = line_.wall > 0.0 ? static_cast<double>(line_.items) / line_.wall : 0.0;
    std::string text = line_.to_json();
    line_ = {};
    loss_ = weight_ = actual_ = imbalance_ = 0.0;
    steps_ = 0;
    return text;
  }

 private:
  observe::StepMetrics line_;
  double loss_ = 0.0;
  double weight_ = 0.0;
  double actual_ = 0.0;
  double imbalance_ = 0.0;
  int64_t steps_ = 0;
  double cpu_ = observe::process_cpu_seconds();
  std::map<std::string, int64_t> sent_;  // since the start
};

/// One run of `chiliad-worker train`.
class WorkerRun {
 public:
  WorkerRun(const WorkerArguments& arguments, ParentLink& link)
      : arguments_(arguments), link_(link), page_(ipc::ProgressPage::map(UniqueFd(arguments.progress))) {}

  void run() {
    page_.set({});
    run_file_ = spec::read_run_file(arguments_.run_file, {});
    wait_alarm_ = loader::WaitAlarm(run_file_.observe.data_wait_alarm);
    bind();
    device::set_compute_threads(static_cast<int>(run_file_.parallel.threads));
    ops::cpu::set_fp32_products(run_file_.parallel.products);
    ops::cpu::keep_freed_memory();
    connect();
    measure_peak();
    build();
    train();
    mesh_->close();
  }
  [[nodiscard]] int64_t step() const { return trainer_ == nullptr ? 0 : trainer_->next_step(); }

 private:
  /// Before threads start: they inherit it.
  void bind() {
    const auto& parallel = run_file_.parallel;
    if (parallel.bind == "none") return;
    topology::BindingRequest request;
    request.num_ranks = arguments_.world;
    request.compute_threads = static_cast<int>(parallel.threads);
    request.communication_threads = arguments_.world > 1 && parallel.transport == "gloo" ? 1 : 0;
    request.loader_threads = static_cast<int>(run_file_.data.loader_threads);
    binder_ = topology::RankBinder(arguments_.rank, request);
    if (binder_.binding().has_value() || arguments_.rank == 0) log_info("{}", binder_.report());
  }

  void connect() {
    const auto scope = binder_.communication();
    comm::ConnectOptions options;
    const auto& transport = run_file_.parallel.transport;
    if (transport == "gloo") options.transport = comm::Transport::kGloo;
    if (transport == "shm") options.transport = comm::Transport::kSharedMemory;
    options.rank = arguments_.rank;
    options.size = arguments_.world;
    options.port = arguments_.port;
    options.listen_fd = arguments_.listen;
    options.timeout =
        std::chrono::duration_cast<Nanoseconds>(std::chrono::duration<double>(run_file_.parallel.timeout_s));
    const auto& layout = run_file_.parallel;
    parallel::MeshShape shape;
    shape.dp_shard = static_cast<int>(layout.dp_shard);
    shape.tp = static_cast<int>(layout.tp);
    shape.cp = static_cast<int>(layout.cp);
    shape.pp = static_cast<int>(layout.pp);
    shape.dp_replicate = arguments_.world / (shape.dp_shard * shape.tp * shape.cp * shape.pp);
    const auto meeting = comm::meet(options);
    // In a group of its own: with other settings the groups of the mesh would not come about.
    std::vector<int> all(static_cast<size_t>(arguments_.world));
    std::iota(all.begin(), all.end(), 0);
    const auto world = meeting->make_group({"start", std::move(all), kStartBytes});
    check_identity(*world, own_identity(run_file_, arguments_.resume));
    mesh_ = std::make_unique<parallel::Mesh>(*meeting, shape, mesh_bytes(run_file_, shape));
    world->close();
    mark_startup();
  }

  /// For bench/startup: the moment, on the machine's steady clock, when the first collective was done.
  void mark_startup() {
    const char* path = std::getenv("CHILIAD_STARTUP_MARK");
    if (path == nullptr) return;
    static_cast<void>(comm::sum_over_ranks(mesh_->world(), std::vector<double>{1.0}));
    if (arguments_.rank != 0) return;
    io::write_atomic(path, std::to_string(clock_.now().count()));
  }

  /// Of all ranks at the same time, which are in step after the first sum.
  void measure_peak() {
    double own = run_file_.observe.peak_flops;
    if (own == 0.0) {
      static_cast<void>(comm::sum_over_ranks(mesh_->world(), std::vector<double>{0.0}));
      observe::PeakRequest request;
      request.num_threads = static_cast<int>(run_file_.parallel.threads);
      const bool bf16 = run_file_.parallel.compute == "bf16";
      request.type = bf16 ? observe::FmaType::kBf16 : observe::FmaType::kF32;
      own = observe::measure_fma_peak(request);
    }
    peak_flops_ = comm::sum_over_ranks(mesh_->world(), std::vector<double>{own}).front();
    if (arguments_.rank == 0)
      log_info("peak of the ranks together: {:.4g} GFLOP/s in {}", peak_flops_ * 1e-9,
               run_file_.parallel.compute);
  }

  void build() {
    index_.emplace(loader::open_index(run_file_.data));
    if (!arguments_.resume.empty()) resume_.emplace(checkpoint::Checkpoint::open(arguments_.resume));
    TrainerSetup setup;
    setup.run = &run_file_;
    setup.index = &*index_;
    setup.mesh = mesh_.get();
    setup.clock = &clock_;
    setup.resume = resume_.has_value() ? &*resume_ : nullptr;
    setup.journal = read_journal(arguments_.journal);
    setup.rates = spec::rates_of(run_file_.parallel);
    setup.binder = &binder_;
    setup.trace = open_trace();
    trainer_ = std::make_unique<Trainer>(std::move(setup));
    resume_.reset();
    const uint64_t digest = trainer_->parameters_digest();
    if (arguments_.rank == 0)
      log_info("parameters at step {}: digest {:016x}", trainer_->next_step(), digest);
    const auto boxes = trainer_->owned_boxes();
    const auto starting = binder_.loading();
    const int64_t slot_bytes = checkpoint::SnapshotRing::slot_bytes_for(boxes, kStateRoom);
    snapshotter_ = std::make_unique<Snapshotter>(
        checkpoint::SnapshotRing::create(kSlots, slot_bytes), arguments_.rank,
        [this](int slot, int64_t step) {
          link_.send(ipc::FrameType::kSnapshot, json_text(Json{{"step", step}, {"slot", slot}}));
        });
    link_.on_slot_free([this](int slot, int64_t, bool) { snapshotter_->release(slot); });
    link_.send(ipc::FrameType::kRing, json_text(Json{{"slots", kSlots}, {"slot_bytes", slot_bytes}}),
               snapshotter_->ring_fd());
    trainer_->set_before_update([this] {
      const observe::TimeAccount::Scope scope(trainer_->account(), observe::Row::kCheckpoint);
      snapshotter_->wait_copied();
    });
  }

  /// Null where no step is traced.
  observe::TraceRecorder* open_trace() {
    const auto& options = run_file_.observe;
    if (options.trace_steps == 0) return nullptr;
    std::vector<std::string> names;
    for (const auto& layer : spec::make_layer_table(run_file_.model).layers) names.push_back(layer.name);
    return &trace_.emplace(std::filesystem::path(arguments_.run_dir) / "trace", arguments_.rank,
                           options.trace_from, options.trace_steps, std::move(names));
  }
  /// The recorder where this step is traced.
  observe::TraceRecorder* trace_of(int64_t step) {
    return trace_.has_value() && trace_->wants(step) ? &*trace_ : nullptr;
  }

  void train() {
    bool stopped = false;
    int64_t last_snapshot = trainer_->next_step();
    loader_seen_ = clock_.now();
    static_cast<void>(trainer_->account().close_step());  // what came before the first step is start-up
    metrics_.start(*mesh_);
    while (!trainer_->finished() && !stopped) {
      page_.set({.step = trainer_->next_step(), .phase = ipc::Phase::kDataWait});
      maybe_signal(arguments_.rank, trainer_->next_step(), "data_wait");
      StepReport report =
          trainer_->run_step(link_.stop_requested(), [this](int64_t step, int32_t index, const auto& i) {
            page_.set(
                {step, phase_of(i.op), i.slot, index, i.layer, trainer_->program(), schedule::op_name(i.op)});
            maybe_signal(arguments_.rank, step, ipc::phase_name(phase_of(i.op)));
            maybe_signal(arguments_.rank, step, schedule::op_name(i.op));
          });
      stopped = report.agreement.stop;
      send_ledger(report);
      auto* trace = trace_of(report.step);
      if (!report.amendments.empty()) {
        const observe::TraceScope span(trace, clock_, {.name = "journal", .track = observe::kStepTrack});
        record(report.amendments);
      }
      if (!report.data_excess.empty()) throw CorruptData("data", report.data_excess);
      if (due(report.step + 1, stopped)) {
        last_snapshot = report.step + 1;
        const observe::TraceScope span(trace, clock_, {.name = "checkpoint", .track = observe::kStepTrack});
        snapshot();
      }
      evaluate(trace);
      if (trace != nullptr) trace->write(report.step);
      finish_step(std::move(report));
    }
    if (last_snapshot < trainer_->next_step()) snapshot();
    snapshotter_->wait_copied();
    flush_metrics();
    page_.set({.step = trainer_->next_step(), .phase = ipc::Phase::kFinished});
    link_.send(ipc::FrameType::kFinished,
               json_text(Json{{"step", trainer_->next_step()},
                              {"reason", stopped && !trainer_->finished() ? "stopped" : "done"}}));
  }

  /// What section evaluation asks for after this step.
  void evaluate(observe::TraceRecorder* trace) {
    const auto& evaluation = run_file_.evaluation;
    const int64_t step = trainer_->next_step();
    const auto is_due = [&](int64_t every) { return every > 0 && step % every == 0; };
    if (!is_due(evaluation.every) && !is_due(evaluation.samples_every)) return;
    const observe::TimeAccount::Scope scope(trainer_->account(), observe::Row::kEvaluation);
    const observe::TraceScope span(trace, clock_, {.name = "evaluation", .track = observe::kStepTrack});
    const auto alive = [this, step] { page_.set({.step = step, .phase = ipc::Phase::kEvaluation}); };
    alive();
    trainer_->evaluation().set_watcher(alive);
    snapshotter_->wait_copied();  // it reads what the averages take the place of
    if (is_due(evaluation.every)) metrics_.set_validation(trainer_->evaluation().validate());
    if (is_due(evaluation.samples_every))
      trainer_->evaluation().make_samples(step, std::filesystem::path(arguments_.run_dir) / "samples");
  }

  [[nodiscard]] bool due(int64_t steps_done, bool stopped) const {
    const int64_t every = run_file_.checkpoint.every;
    return stopped || trainer_->finished() || (every > 0 && steps_done % every == 0);
  }

  void snapshot() {
    const observe::TimeAccount::Scope scope(trainer_->account(), observe::Row::kCheckpoint);
    page_.set({.step = trainer_->next_step(), .phase = ipc::Phase::kCheckpoint});
    trainer_->check_parameters();
    injected_delay(observe::Row::kCheckpoint);
    maybe_signal(arguments_.rank, trainer_->next_step(), "checkpoint");
    const auto deadline = std::chrono::duration<double>(run_file_.checkpoint.timeout_s);
    // A slot is awaited by all ranks alike: a rank that skipped alone would leave a checkpoint without its
    // part.
    if (snapshotter_->start(trainer_->next_step(), trainer_->state(), trainer_->owned_boxes(),
                            std::chrono::duration_cast<Nanoseconds>(deadline))) {
      return;
    }
    const auto message =
        fmt::format("no snapshot slot came free within checkpoint.timeout_s = {} s: storage is too slow",
                    run_file_.checkpoint.timeout_s);
    throw Unavailable(fmt::format("checkpoint of step {}", trainer_->next_step()), message);
  }

  void record(const std::vector<stepplan::Amendment>& amendments) {
    for (const auto& amendment : amendments) {
      if (arguments_.rank == 0) {
        log_warn("item {} is skipped from now on: {}", index_->key(amendment.sample), amendment.reason);
      }
    }
    if (arguments_.rank != 0) return;
    stepplan::Journal fresh;
    const auto now = static_cast<std::time_t>(to_seconds(clock_.wall()));
    for (auto amendment : amendments) {
      amendment.found_at = fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(now));
      fresh.add(amendment);
    }
    link_.make_durable(fresh.to_jsonl(), std::chrono::seconds(60));
  }

  /// Before the snapshot of the same step, so that no committed checkpoint lacks a line.
  void send_ledger(const StepReport& report) {
    if (arguments_.rank != 0 || !run_file_.observe.ledger) return;
    link_.send(ipc::FrameType::kLedger,
               json_text(Json{{"step", report.step},
                              {"items", report.items.hex()},
                              {"consumed", fmt::format("{:016x}", report.agreement.consumed)}}));
  }

  void finish_step(StepReport report) {
    if (!report.updated && arguments_.rank == 0) {
      log_warn("step {}: no update ({})", report.step,
               report.agreement.finite ? "no usable item" : "gradients are not finite");
    }
    report.account = trainer_->account().close_step();
    const double wait = report.account.seconds[static_cast<size_t>(observe::Row::kDataWait)];
    if (wait > run_file_.observe.data_wait_alarm_s) {
      log_warn("step {}: rank {} waited {:.2f} s for data (alarm at {:.2f} s)", report.step, arguments_.rank,
               wait, run_file_.observe.data_wait_alarm_s);
    }
    const auto alarm = wait_alarm_.add_step(report.account.wall, wait, trainer_->loader_stats());
    if (alarm.has_value()) log_warn("rank {} {}", arguments_.rank, *alarm);
    metrics_.add(report);
    metrics_.count(*mesh_);
    const int64_t every = run_file_.observe.log_every;
    if (trainer_->next_step() % every == 0 || report.step == 0 || metrics_.has_validation_loss())
      flush_metrics();
  }

  void flush_metrics() {
    if (arguments_.rank != 0 || metrics_.empty()) return;
    metrics_.set_loader(loader_metrics());
    link_.send(ipc::FrameType::kMetrics,
               metrics_.take(run_file_.run.steps, meter_.peak_bytes() + mesh_->shared_bytes(), peak_flops_));
    meter_.reset_peak();
  }

  observe::LoaderMetrics loader_metrics() {
    const auto stats = trainer_->loader_stats();
    const Nanoseconds now = clock_.now();
    observe::LoaderMetrics metrics;
    metrics.threads = stats.threads;
    metrics.prefetch_steps = stats.prefetch_steps;
    metrics.tuner_changes = stats.tuner_changes;
    metrics.bytes = stats.slab.allocated;
    metrics.slow_items = stats.slow_items;
    metrics.wait_alarms = wait_alarm_.num_alarms();
    metrics.bottleneck = loader::bottleneck_name(
        loader::find_bottleneck(loader_before_, stats, to_seconds(now - loader_seen_)));
    loader_before_ = stats;
    loader_seen_ = now;
    return metrics;
  }

  const WorkerArguments& arguments_;
  ParentLink& link_;
  ipc::ProgressPage page_;
  SystemClock clock_;
  device::MemoryMeter meter_;
  spec::RunFile run_file_;
  topology::RankBinder binder_;
  std::unique_ptr<parallel::Mesh> mesh_;
  std::optional<index::Index> index_;
  std::optional<checkpoint::Checkpoint> resume_;
  std::optional<observe::TraceRecorder> trace_;
  std::unique_ptr<Trainer> trainer_;
  std::unique_ptr<Snapshotter> snapshotter_;
  MetricsSum metrics_;
  loader::WaitAlarm wait_alarm_{1.0};
  loader::LoaderStats loader_before_;  // at the last line of metrics
  Nanoseconds loader_seen_{0};
  double peak_flops_ = 0.0;  // of all ranks together; 0: not known
};

}  // namespace

int run_worker(const WorkerArguments& arguments) {
  ipc::die_with_parent(arguments.parent);
  std::signal(SIGINT, SIG_IGN);  // the parent decides; a terminal sends Ctrl-C to the whole group
  start_logging({LogLevel::kInfo, fmt::format("rank {}", arguments.rank), ""});
  ParentLink link{ipc::Channel(UniqueFd(arguments.channel))};
  link.send(ipc::FrameType::kHello, json_text(Json{{"pid", ::getpid()}}));
  auto run = std::make_unique<WorkerRun>(arguments, link);
  try {
    run->run();
    link.finish();
    return 0;
  } catch (const std::exception& error) {
    link.finish();
    const auto* known = dynamic_cast<const Error*>(&error);
    const std::string place = known == nullptr ? "" : known->place();
    std::string message = error.what();
    if (!place.empty() && message.rfind(place + ": ", 0) == 0) message = message.substr(place.size() + 2);
    link.send(ipc::FrameType::kError, json_text(Json{{"kind", kind_name(kind_of(error))},
                                                     {"place", place},
                                                     {"message", message},
                                                     {"step", run->step()},
                                                     {"ranks", ranks_of(error)}}));
    std::fflush(nullptr);
    ::_exit(exit_code(error));  // peers may hold collectives open; nothing here is left to save
  }
}

}  // namespace chiliad::train
