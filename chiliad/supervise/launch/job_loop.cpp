#include "chiliad/supervise/launch/job_loop.h"

#include <poll.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/base/log.h"
#include "chiliad/base/units.h"
#include "chiliad/observe/metrics.h"
#include "chiliad/supervise/launch/frames.h"

namespace chiliad::supervise {
namespace {

constexpr int kTickMs = 100;
constexpr int64_t kMaxSampleBytes = 64LL << 20;
// Between attempts to save what is left at the end, e.g. until somebody has made room on the disk.
constexpr Nanoseconds kFirstSavePause = std::chrono::seconds(1);
constexpr Nanoseconds kLongestSavePause = std::chrono::seconds(15);
// A frame that has begun is read to its end; a peer that stops in the middle of one is as good as lost.
constexpr Nanoseconds kFramePatience = std::chrono::seconds(1);

}  // namespace

JobLoop::JobLoop(LoopOptions options, const RunDirectory& directory,
                 std::vector<std::unique_ptr<Worker>> workers, SignalWatch& signals, const Clock& clock)
    : options_(std::move(options)),
      directory_(directory),
      signals_(signals),
      clock_(clock),
      machine_(options_.machine, clock.now()),
      workers_(std::move(workers)),
      rings_(workers_.size()),
      open_(workers_.size(), true),
      exited_(workers_.size(), false),
      metrics_(directory.metrics()),
      samples_(directory.samples()),
      last_step_(options_.first_step),
      persister_(options_.persister) {
  // Metrics count steps that are done.
  if (options_.tensorboard) tensorboard_.emplace(directory.tensorboard(), options_.first_step + 1, clock_);
  if (options_.progress_out == nullptr) return;
  progress_.emplace(*options_.progress_out, options_.progress, clock_,
                    observe::ProgressOptions{.label = "train"});
  progress_->update(options_.first_step, options_.num_steps, "starting");
}

template <typename... Args>
void JobLoop::say(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (progress_.has_value()) progress_->clear();
  log_line(level, fmt::format(format, std::forward<Args>(args)...));
}

void JobLoop::run() {
  while (!machine_.all_exited()) wait_and_serve();
  if (machine_.failing()) seal_what_is_left();
  while (machine_.persisting()) wait_and_serve();
  if (!machine_.failing()) save_again();
  show_samples();
  if (!progress_.has_value()) return;
  if (machine_.failing()) {
    progress_->clear();
  } else {
    progress_->finish();
  }
}

std::vector<Position> JobLoop::last_positions() const {
  std::vector<Position> positions;
  for (const auto& worker : workers_) positions.push_back(worker->position());
  return positions;
}

void JobLoop::wait_and_serve() {
  const size_t count = workers_.size();
  std::vector<pollfd> entries(2 * count + 2);
  for (size_t rank = 0; rank < count; ++rank) {
    entries[rank] = {open_[rank] ? workers_[rank]->channel.fd() : -1, POLLIN, 0};
    entries[count + rank] = {exited_[rank] ? -1 : workers_[rank]->process.pidfd(), POLLIN, 0};
  }
  entries[2 * count] = {signals_.fd(), POLLIN, 0};
  entries[2 * count + 1] = {persister_.fd(), POLLIN, 0};
  if (::poll(entries.data(), entries.size(), kTickMs) < 0) return;  // EINTR
  // Channels before exits: what a worker said explains how it ended.
  for (size_t rank = 0; rank < count; ++rank) {
    if (entries[rank].revents != 0) serve_channel(static_cast<int>(rank));
  }
  for (size_t rank = 0; rank < count; ++rank) {
    if (entries[count + rank].revents != 0) serve_exit(static_cast<int>(rank));
  }
  if (entries[2 * count + 1].revents != 0) serve_results();
  for (int n = signals_.take(); n > 0; --n) {
    const auto actions = machine_.on_signal(clock_.now());
    if (!actions.empty()) {
      const bool asks = actions.front().kind == Action::Kind::kStop;
      say(LogLevel::kInfo, "{}",
          asks ? "stopping: saving at the next step; a second signal kills at once" : "killing");
    }
    carry_out(actions);
  }
  tick();
}

void JobLoop::serve_channel(int rank) {
  const auto index = static_cast<size_t>(rank);
  if (!open_[index]) return;
  try {
    if (auto frame = workers_[index]->channel.receive(kFramePatience)) on_frame(rank, std::move(*frame));
  } catch (const Error& error) {
    open_[index] = false;
    if (error.kind() == ErrorKind::kPeerLost) {
      // The end of a worker's channel is the end of the worker, seen next; the kernel closes the channel
      // first.
      if (workers_[index]->process.wait(kFramePatience).has_value()) return;
    }
    carry_out(machine_.on_channel_lost(rank, error.what(), workers_[index]->position(), clock_.now()));
  }
}

void JobLoop::serve_exit(int rank) {
  const auto index = static_cast<size_t>(rank);
  const auto status = workers_[index]->process.wait(Nanoseconds(0));
  if (!status.has_value()) return;
  exited_[index] = true;
  // What it said last is still in the socket.
  for (bool more = true; more && open_[index];) {
    try {
      auto frame = workers_[index]->channel.receive(Nanoseconds(0));
      more = frame.has_value();
      if (more) on_frame(rank, std::move(*frame));
    } catch (const Error&) {
      open_[index] = false;
    }
  }
  open_[index] = false;
  const WorkerExit exit{status->code, status->signal, status->to_string()};
  carry_out(machine_.on_exit(rank, exit, workers_[index]->position(), clock_.now()));
}

void JobLoop::on_frame(int rank, ipc::Frame frame) {
  const auto now = clock_.now();
  switch (frame.type) {
    case ipc::FrameType::kHello:
      return;
    case ipc::FrameType::kRing:
      return on_ring(rank, std::move(frame));
    case ipc::FrameType::kMetrics:
      return on_metrics(frame.body);
    case ipc::FrameType::kLedger:
      return on_ledger(frame.body);
    case ipc::FrameType::kSnapshot: {
      const auto snapshot = read_snapshot_frame(frame.body);
      const auto& ring = rings_[static_cast<size_t>(rank)];
      if (ring == nullptr || snapshot.slot < 0 || snapshot.slot >= ring->num_slots()) {
        throw CorruptData("snapshot frame", fmt::format("rank {} has no slot {}", rank, snapshot.slot));
      }
      return carry_out(machine_.on_snapshot(rank, snapshot.step, snapshot.slot, now));
    }
    case ipc::FrameType::kJournal:
      return on_journal(rank, frame.body);
    case ipc::FrameType::kFinished: {
      const auto finished = read_finished_frame(frame.body);
      last_step_ = std::max(last_step_, finished.step);
      return machine_.on_finished(rank, finished.step, finished.reason);
    }
    case ipc::FrameType::kError:
      return carry_out(machine_.on_error(rank, read_error_frame(frame.body), last_positions(), now));
    case ipc::FrameType::kLog: {
      const auto entry = read_log_frame(frame.body);
      return say(entry.level, "[rank {}] {}", rank, entry.line);
    }
    default:
      throw CorruptData("channel",
                        fmt::format("unexpected frame type {}", static_cast<uint32_t>(frame.type)));
  }
}

void JobLoop::on_ring(int rank, ipc::Frame frame) {
  auto& ring = rings_[static_cast<size_t>(rank)];
  if (ring != nullptr || !frame.fd.valid()) {
    throw CorruptData("ring frame", fmt::format("rank {} sent no ring, or a second one", rank));
  }
  ring = std::make_unique<checkpoint::SnapshotRing>(checkpoint::SnapshotRing::map(std::move(frame.fd)));
}

void JobLoop::on_metrics(const std::string& body) {
  metrics_.append(body);
  observe::StepMetrics metrics;
  try {
    metrics = observe::StepMetrics::from_json(body);
  } catch (const CorruptData& error) {
    return say(LogLevel::kWarn, "{}", error.what());  // a bad line of metrics is no reason to end a run
  }
  if (metrics.rank != 0) return;
  if (tensorboard_.has_value()) tensorboard_->add(metrics);
  show_samples();
  last_step_ = std::max(last_step_, metrics.step);
  progress_detail_ = fmt::format("loss {:.4g}, {:.1f} items/s", metrics.loss, metrics.items_per_s);
  if (metrics.mfu.has_value()) progress_detail_ += fmt::format(", MFU {:.1f}%", 100.0 * *metrics.mfu);
  if (metrics.wall > 0.0) {
    const double waited = metrics.seconds[static_cast<size_t>(observe::Row::kDataWait)] / metrics.wall;
    if (waited >= 0.05) progress_detail_ += fmt::format(", {:.0f}% waiting for data", 100.0 * waited);
  }
  if (progress_.has_value()) progress_->update(last_step_, options_.num_steps, progress_detail_);
}

void JobLoop::show_samples() {
  if (!tensorboard_.has_value()) return;
  for (const auto& sample : samples_.take()) {
    try {
      const auto png = io::read_file(sample.path, kMaxSampleBytes);
      tensorboard_->add(sample.step, observe::Picture{"samples", png});
    } catch (const Error& error) {
      say(LogLevel::kWarn, "{}. TensorBoard does not show it", error.what());
    }
  }
}

void JobLoop::on_ledger(const std::string& body) {
  if (!ledger_.has_value()) ledger_.emplace(directory_.ledger());
  ledger_->append(body);
}

void JobLoop::on_journal(int rank, const std::string& body) {
  try {
    const bool is_new = !io::stat_file(directory_.journal()).has_value();
    auto file = io::File::open_append(directory_.journal());
    file.write(body.ends_with('\n') ? body : body + "\n");
    file.sync();
    file.close();
    if (is_new) io::sync_folder(directory_.path());
  } catch (const Unavailable& error) {
    const auto text = fmt::format("the journal cannot be made durable: {}", error.what());
    return carry_out(machine_.on_job_error(ErrorKind::kUnavailable, text, clock_.now()));
  }
  send(rank, ipc::FrameType::kJournalDone, "");
}

void JobLoop::serve_results() {
  for (const auto& result : persister_.take_results()) {
    const auto& snapshot = result.snapshot;
    const bool committed = result.problem.empty();
    machine_.on_persisted(snapshot.step, result.problem);
    if (committed) {
      last_checkpoint_ = result.path;
      last_step_ = std::max(last_step_, snapshot.step);
      say(LogLevel::kInfo, "checkpoint {} committed in {}", result.path, format_seconds(result.seconds));
    } else {
      say(LogLevel::kError, "checkpoint of step {} was abandoned: {}{}", snapshot.step, result.problem,
          machine_.all_exited() ? "" : ". Training goes on");
    }
    if (!result.warning.empty()) say(LogLevel::kWarn, "{}", result.warning);
    for (size_t rank = 0; rank < snapshot.slots.size(); ++rank) {
      send(static_cast<int>(rank), ipc::FrameType::kSlotFree,
           slot_free_body(snapshot.slots[rank], snapshot.step, committed));
    }
  }
}

void JobLoop::tick() {
  const auto positions = last_positions();
  carry_out(machine_.on_tick(positions, clock_.now()));
  if (options_.on_step) {
    const auto behind = std::min_element(positions.begin(), positions.end(),
                                         [](const auto& a, const auto& b) { return a.step < b.step; });
    options_.on_step(behind->step);
  }
  if (!progress_.has_value() || machine_.failing() || machine_.all_exited()) return;
  const int64_t step = std::max(last_step_, positions.front().step);
  progress_->update(std::min(step, options_.num_steps), options_.num_steps,
                    progress_detail_.empty() ? positions.front().phase : progress_detail_);
}

void JobLoop::carry_out(const JobMachine::Actions& actions) {
  for (const auto& action : actions) {
    switch (action.kind) {
      case Action::Kind::kStop:
        send(action.rank, ipc::FrameType::kStop, "");
        break;
      case Action::Kind::kTerminate:
        workers_[static_cast<size_t>(action.rank)]->process.signal(SIGTERM);
        break;
      case Action::Kind::kKill:
        workers_[static_cast<size_t>(action.rank)]->process.signal(SIGKILL);
        break;
      case Action::Kind::kPersist:
        persist(action.snapshot);
        break;
      case Action::Kind::kWarn:
        say(LogLevel::kWarn, "{}", action.text);
        break;
    }
  }
}

void JobLoop::persist(const SnapshotSet& snapshot) {
  Persister::Task task{snapshot, {}};
  for (const auto& ring : rings_) task.rings.push_back(ring.get());
  persister_.submit(std::move(task));
}

void JobLoop::send(int rank, ipc::FrameType type, const std::string& body) {
  const auto index = static_cast<size_t>(rank);
  if (!open_[index]) return;
  try {
    workers_[index]->channel.send(type, body);
  } catch (const PeerLost&) {
    // Its exit tells more and is seen next.
  } catch (const Unavailable& error) {
    say(LogLevel::kWarn, "rank {} does not read its channel: {}", rank, error.what());
  }
}

std::optional<SnapshotSet> JobLoop::left_to_save() const {
  std::vector<std::vector<int64_t>> complete;
  for (const auto& ring : rings_) {
    if (ring == nullptr) return std::nullopt;
    auto& slots = complete.emplace_back();
    for (int slot = 0; slot < ring->num_slots(); ++slot) slots.push_back(ring->complete_step(slot));
  }
  return sealable(complete, std::max(machine_.last_committed(), options_.first_step));
}

void JobLoop::save(const SnapshotSet& snapshot) {
  for (size_t rank = 0; rank < snapshot.slots.size(); ++rank) {
    carry_out(
        machine_.on_snapshot(static_cast<int>(rank), snapshot.step, snapshot.slots[rank], clock_.now()));
  }
  while (machine_.persisting()) wait_and_serve();
}

void JobLoop::seal_what_is_left() {
  while (machine_.persisting()) wait_and_serve();
  const auto left = left_to_save();
  if (!left.has_value()) return;
  say(LogLevel::kInfo, "saving the snapshot of step {} that all ranks had finished", left->step);
  save(*left);
  if (machine_.last_committed() == left->step) sealed_ = left->step;
}

void JobLoop::save_again() {
  const auto give_up = clock_.now() + options_.machine.checkpoint_timeout;
  Nanoseconds pause = kFirstSavePause;
  for (auto left = left_to_save(); left.has_value(); left = left_to_save()) {
    const auto rest = give_up - clock_.now();
    if (rest <= Nanoseconds(0) || machine_.killed_by_user()) return;
    say(LogLevel::kWarn, "step {} is still in memory: saving it again in {} (for {} yet, then it is lost)",
        left->step, format_seconds(to_seconds(pause)), format_seconds(to_seconds(rest)));
    const auto resume = clock_.now() + pause;
    pause = std::min(2 * pause, kLongestSavePause);
    while (clock_.now() < resume && !machine_.killed_by_user()) wait_and_serve();
    save(*left);
  }
}

}  // namespace chiliad::supervise
