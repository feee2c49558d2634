#include "chiliad/supervise/launch/job_machine.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "chiliad/base/error_kinds.h"
#include "chiliad/base/units.h"

namespace chiliad::supervise {
namespace {

constexpr int kPeerLostCode = 4;

std::string where(const Position& at) {
  return at.changed == Nanoseconds(0) ? std::string("while starting")
                                      : fmt::format("at step {} in phase {}", at.step, at.phase);
}

}  // namespace

JobMachine::JobMachine(MachineOptions options, Nanoseconds now)
    : options_(options), ranks_(static_cast<size_t>(options.num_ranks)), started_(now) {}

JobMachine::Actions JobMachine::on_snapshot(int rank, int64_t step, int slot, Nanoseconds now) {
  auto& pending = pending_[step];
  if (pending.slots.empty()) pending.since = now;
  pending.slots[rank] = slot;
  if (std::ssize(pending.slots) < options_.num_ranks) return {};
  Action persist{
      .kind = Action::Kind::kPersist, .rank = -1, .snapshot = {.step = step, .slots = {}}, .text = {}};
  for (const auto& [owner, index] : pending.slots) persist.snapshot.slots.push_back(index);
  persisting_[step] = pending.since;
  pending_.erase(step);
  return {persist};
}

void JobMachine::on_finished(int rank, int64_t step, const std::string& reason) {
  auto& state = ranks_[static_cast<size_t>(rank)];
  state.finished = true;
  state.finished_step = step;
  state.reason = reason;
}

JobMachine::Actions JobMachine::on_error(int rank, WorkerError error, const std::vector<Position>& positions,
                                         Nanoseconds now) {
  auto& state = ranks_[static_cast<size_t>(rank)];
  const bool secondary = error.kind == ErrorKind::kPeerLost;
  Failure failure{rank, exit_code(error.kind), secondary,
                  fmt::format("rank {} failed at step {}: {}", rank, error.step, error.message)};
  if (!secondary && !error.ranks.empty()) {
    // All ranks found the same: which of them said so first is of no interest.
    failure.text = error.message;
    failure.suspects = error.ranks;
  }
  if (secondary || error.kind == ErrorKind::kInternal) {
    Stall stall = secondary ? explain_stall(positions, error.ranks) : compare_programs(positions);
    if (!stall.text.empty()) failure.text = fmt::format("{}. {}", stall.text, failure.text);
    if (!stall.odd.empty()) failure.suspects = std::move(stall.odd);
  }
  state.error = std::move(error);
  return fail(std::move(failure), now);
}

JobMachine::Actions JobMachine::on_exit(int rank, WorkerExit exit, const Position& last, Nanoseconds now) {
  auto& state = ranks_[static_cast<size_t>(rank)];
  state.exited = true;
  ++num_exited_;
  const bool clean = exit.signal == 0 && exit.code == 0 && state.finished;
  if (clean || state.ended_by_us || state.error.has_value()) return {};
  if (exit.signal == 0 && exit.code == 0) {
    return fail(
        {rank, 5, false, fmt::format("rank {} left {} without finishing (exit code 0)", rank, where(last))},
        now);
  }
  return fail({rank, kPeerLostCode, false, fmt::format("rank {} died {}: {}", rank, where(last), exit.text)},
              now);
}

JobMachine::Actions JobMachine::on_channel_lost(int rank, const std::string& why, const Position& last,
                                                Nanoseconds now) {
  auto& state = ranks_[static_cast<size_t>(rank)];
  if (state.exited || state.finished || state.ended_by_us || state.error.has_value()) return {};
  // Most likely it is dying: its exit, seen next, says more.
  return fail(
      {rank, kPeerLostCode, true, fmt::format("rank {} lost its channel {}: {}", rank, where(last), why)},
      now);
}

JobMachine::Actions JobMachine::on_job_error(ErrorKind kind, const std::string& message, Nanoseconds now) {
  return fail({-1, exit_code(kind), false, message}, now);
}

JobMachine::Actions JobMachine::fail(Failure failure, Nanoseconds now) {
  const bool first = failures_.empty();
  failures_.push_back(std::move(failure));
  if (!first) return {};
  kill_at_ = now + options_.peer_grace;
  Actions actions;
  for (int rank = 0; rank < options_.num_ranks; ++rank) {
    if (rank == failures_.front().rank || ranks_[static_cast<size_t>(rank)].exited) continue;
    actions.push_back({.kind = Action::Kind::kStop, .rank = rank, .snapshot = {}, .text = {}});
  }
  return actions;
}

JobMachine::Actions JobMachine::on_signal(Nanoseconds) {
  ++num_signals_;
  Actions actions;
  if (num_signals_ > 2) return actions;
  const auto kind = num_signals_ == 1 ? Action::Kind::kStop : Action::Kind::kKill;
  for (int rank = 0; rank < options_.num_ranks; ++rank) {
    auto& state = ranks_[static_cast<size_t>(rank)];
    if (state.exited) continue;
    if (kind == Action::Kind::kKill) state.ended_by_us = true;
    actions.push_back({.kind = kind, .rank = rank, .snapshot = {}, .text = {}});
  }
  return actions;
}

void JobMachine::on_persisted(int64_t step, const std::string& problem) {
  persisting_.erase(step);
  if (problem.empty()) {
    last_committed_ = std::max(last_committed_, step);
    return;
  }
  if (step < failed_checkpoint_) return;
  failed_checkpoint_ = step;
  checkpoint_problem_ = problem;
}

JobMachine::Actions JobMachine::on_tick(const std::vector<Position>& positions, Nanoseconds now) {
  Actions actions;
  warn_late_checkpoints(now, actions);
  if (!failing()) {
    auto more = check_hang(positions, now);
    actions.insert(actions.end(), more.begin(), more.end());
    return actions;
  }
  if (killed_ || now < kill_at_) return actions;
  killed_ = true;
  for (int rank = 0; rank < options_.num_ranks; ++rank) {
    auto& state = ranks_[static_cast<size_t>(rank)];
    if (state.exited) continue;
    state.ended_by_us = true;
    actions.push_back({.kind = Action::Kind::kKill, .rank = rank, .snapshot = {}, .text = {}});
  }
  return actions;
}

JobMachine::Actions JobMachine::check_hang(const std::vector<Position>& positions, Nanoseconds now) {
  std::vector<int> stuck;
  for (int rank = 0; rank < options_.num_ranks; ++rank) {
    const auto& state = ranks_[static_cast<size_t>(rank)];
    if (state.exited) continue;
    const bool waits_for_writer = persisting() && positions[static_cast<size_t>(rank)].phase == "checkpoint";
    if (waits_for_writer) continue;  // a slow disk is no hang of the worker
    const auto changed = std::max(positions[static_cast<size_t>(rank)].changed, started_);
    if (now - changed >= options_.hang_timeout) stuck.push_back(rank);
  }
  if (stuck.empty()) return {};
  Stall stall = explain_stall(positions);
  // Where nobody is behind, those that have stood still for longest.
  const int first = stall.odd.empty() ? stuck.front() : stall.odd.front();
  Failure failure{
      first, kPeerLostCode, false,
      fmt::format("no progress for {}: {}", format_seconds(to_seconds(options_.hang_timeout)), stall.text),
      std::move(stall.odd)};
  auto actions = fail(std::move(failure), now);
  actions.push_back({.kind = Action::Kind::kTerminate, .rank = first, .snapshot = {}, .text = {}});
  return actions;
}

void JobMachine::warn_late_checkpoints(Nanoseconds now, Actions& actions) {
  for (auto& [step, pending] : pending_) {
    if (pending.warned || now - pending.since < options_.checkpoint_timeout) continue;
    pending.warned = true;
    std::string missing;
    for (int rank = 0; rank < options_.num_ranks; ++rank) {
      if (!pending.slots.contains(rank)) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", rank);
    }
    actions.push_back(
        {.kind = Action::Kind::kWarn,
         .rank = -1,
         .snapshot = {},
         .text = fmt::format("checkpoint of step {}: rank {} has not delivered its snapshot for {}", step,
                             missing, format_seconds(to_seconds(now - pending.since)))});
  }
}

JobMachine::Outcome JobMachine::outcome() const {
  Outcome outcome;
  for (const auto& rank : ranks_) outcome.step = std::max(outcome.step, rank.finished_step);
  if (!failures_.empty()) {
    const auto primary =
        std::find_if(failures_.begin(), failures_.end(), [](const auto& f) { return !f.secondary; });
    const auto& cause = primary == failures_.end() ? failures_.front() : *primary;
    outcome.exit_code = cause.code;
    outcome.message = cause.text;
    outcome.reason = "failed";
    outcome.suspects = cause.suspects;
    outcome.rank = cause.suspects.empty() ? cause.rank : cause.suspects.front();
    if (outcome.suspects.empty() && cause.rank >= 0) outcome.suspects = {cause.rank};
    return outcome;
  }
  if (num_signals_ >= 2) {
    outcome.exit_code = 1;
    outcome.reason = "killed";
    outcome.message = "killed by a second signal; work since the last checkpoint is lost";
    return outcome;
  }
  outcome.reason = num_signals_ > 0 ? "stopped" : ranks_.front().reason;
  if (failed_checkpoint_ > last_committed_) {
    outcome.exit_code = 1;
    outcome.message = fmt::format("the last checkpoint (step {}) could not be written: {}",
                                  failed_checkpoint_, checkpoint_problem_);
  }
  return outcome;
}

std::optional<SnapshotSet> sealable(const std::vector<std::vector<int64_t>>& complete_steps,
                                    int64_t last_committed) {
  if (complete_steps.empty()) return std::nullopt;
  auto candidates = complete_steps.front();
  std::sort(candidates.rbegin(), candidates.rend());
  for (const int64_t step : candidates) {
    if (step < 0 || step <= last_committed) continue;
    SnapshotSet set{.step = step, .slots = {}};
    for (const auto& slots : complete_steps) {
      const auto it = std::find(slots.begin(), slots.end(), step);
      if (it == slots.end()) break;
      set.slots.push_back(static_cast<int>(it - slots.begin()));
    }
    if (set.slots.size() == complete_steps.size()) return set;
  }
  return std::nullopt;
}

}  // namespace chiliad::supervise
