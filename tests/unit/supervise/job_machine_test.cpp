#include "chiliad/supervise/launch/job_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace chiliad::supervise {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

constexpr Nanoseconds kStart = seconds(1000);

MachineOptions two_ranks() {
  MachineOptions options;
  options.num_ranks = 2;
  options.hang_timeout = seconds(30);
  return options;
}

Position at(int64_t step, const std::string& phase, int instruction, Nanoseconds changed) {
  Position position;
  position.step = step;
  position.phase = phase;
  position.instruction = instruction;
  position.changed = changed;
  return position;
}

const WorkerExit kKilled{0, 9, "signal 9 (Killed)"};
const WorkerExit kClean{0, 0, "exit code 0"};

std::vector<Action::Kind> kinds(const JobMachine::Actions& actions) {
  std::vector<Action::Kind> out;
  for (const auto& action : actions) out.push_back(action.kind);
  return out;
}

TEST(JobMachineTest, PersistsWhenTheLastRankDelivers) {
  JobMachine machine(two_ranks(), kStart);
  EXPECT_TRUE(machine.on_snapshot(1, 10, 0, kStart).empty());
  const auto actions = machine.on_snapshot(0, 10, 1, kStart);
  ASSERT_EQ(kinds(actions), std::vector{Action::Kind::kPersist});
  EXPECT_EQ(actions[0].snapshot.step, 10);
  EXPECT_EQ(actions[0].snapshot.slots, (std::vector{1, 0}));
}

TEST(JobMachineTest, EndsWellWhenAllFinish) {
  JobMachine machine(two_ranks(), kStart);
  for (int rank = 0; rank < 2; ++rank) {
    machine.on_finished(rank, 50, "done");
    EXPECT_TRUE(machine.on_exit(rank, kClean, at(50, "finished", 0, kStart), kStart).empty());
  }
  EXPECT_TRUE(machine.all_exited());
  EXPECT_EQ(machine.outcome().exit_code, 0);
  EXPECT_EQ(machine.outcome().reason, "done");
  EXPECT_EQ(machine.outcome().step, 50);
}

TEST(JobMachineTest, NamesRankStepPhaseAndSignalOfADeath) {
  JobMachine machine(two_ranks(), kStart);
  (void)machine.on_exit(1, kKilled, at(37, "backward", 5, kStart), kStart);
  EXPECT_EQ(machine.outcome().message, "rank 1 died at step 37 in phase backward: signal 9 (Killed)");
  EXPECT_EQ(machine.outcome().exit_code, 4);
}

TEST(JobMachineTest, KillsTheOthersAfterTheGrace) {
  JobMachine machine(two_ranks(), kStart);
  const auto stop = machine.on_exit(1, kKilled, at(37, "backward", 5, kStart), kStart);
  ASSERT_EQ(kinds(stop), std::vector{Action::Kind::kStop});
  EXPECT_EQ(stop[0].rank, 0);
  const std::vector<Position> positions{at(37, "backward", 6, kStart), at(37, "backward", 5, kStart)};
  EXPECT_TRUE(machine.on_tick(positions, kStart + seconds(1) - Nanoseconds(1)).empty());
  const auto kill = machine.on_tick(positions, kStart + seconds(1));
  ASSERT_EQ(kinds(kill), std::vector{Action::Kind::kKill});
  EXPECT_EQ(kill[0].rank, 0);
  EXPECT_TRUE(machine.on_tick(positions, kStart + seconds(2)).empty());
}

TEST(JobMachineTest, ALostPeerIsNotTheCause) {
  JobMachine machine(two_ranks(), kStart);
  (void)machine.on_error(0, {ErrorKind::kPeerLost, "all-reduce: peer gone", 37, {}}, {}, kStart);
  (void)machine.on_exit(1, kKilled, at(37, "backward", 5, kStart), kStart);
  EXPECT_THAT(machine.outcome().message, HasSubstr("rank 1 died"));
}

TEST(JobMachineTest, AWorkersOwnErrorGivesTheExitCode) {
  JobMachine machine(two_ranks(), kStart);
  (void)machine.on_error(0, {ErrorKind::kCorruptData, "shard 3: checksum differs", 12, {}}, {}, kStart);
  (void)machine.on_exit(0, {3, 0, "exit code 3"}, at(12, "data_wait", 0, kStart), kStart);
  EXPECT_EQ(machine.outcome().exit_code, 3);
  EXPECT_EQ(machine.outcome().message, "rank 0 failed at step 12: shard 3: checksum differs");
}

TEST(JobMachineTest, ALostPeerIsExplainedByWhereAllRanksAre) {
  JobMachine machine(two_ranks(), kStart);
  const std::vector<Position> positions{at(37, "communication", 12, kStart), at(37, "backward", 5, kStart)};
  (void)machine.on_error(0, {ErrorKind::kPeerLost, "rank 1 did not post", 37, {1}}, positions, kStart);
  const auto outcome = machine.outcome();
  EXPECT_THAT(outcome.message, HasSubstr("rank 1 is behind: rank 1 is at step 37, backward"));
  EXPECT_THAT(outcome.message, HasSubstr("rank 0 failed at step 37: rank 1 did not post"));
  EXPECT_EQ(outcome.suspects, std::vector{1});
  EXPECT_EQ(outcome.rank, 1);
}

TEST(JobMachineTest, AnErrorAboutAnotherRankNamesIt) {
  JobMachine machine(two_ranks(), kStart);
  (void)machine.on_error(0, {ErrorKind::kCorruptData, "parameters of rank 1", 37, {1}}, {}, kStart);
  EXPECT_EQ(machine.outcome().message, "parameters of rank 1");
  EXPECT_EQ(machine.outcome().rank, 1);
}

TEST(JobMachineTest, ABugOfOursNamesTheRankWithAnotherProgram) {
  auto options = two_ranks();
  options.num_ranks = 3;
  JobMachine machine(options, kStart);
  std::vector<Position> positions(3, at(37, "communication", 12, kStart));
  for (auto& position : positions) position.program = 7;
  positions[2].program = 8;
  (void)machine.on_error(0, {ErrorKind::kInternal, "not the same call", 37, {}}, positions, kStart);
  EXPECT_THAT(machine.outcome().message, HasSubstr("rank 2 is running another program"));
  EXPECT_EQ(machine.outcome().rank, 2);
}

TEST(JobMachineTest, LeavingWithoutFinishingIsAFailure) {
  JobMachine machine(two_ranks(), kStart);
  (void)machine.on_exit(0, kClean, at(3, "forward", 0, kStart), kStart);
  EXPECT_EQ(machine.outcome().exit_code, 5);
}

TEST(JobMachineTest, OurOwnKillIsNoFailure) {
  JobMachine machine(two_ranks(), kStart);
  (void)machine.on_signal(kStart);
  const auto kill = machine.on_signal(kStart);
  EXPECT_EQ(kinds(kill), (std::vector{Action::Kind::kKill, Action::Kind::kKill}));
  (void)machine.on_exit(0, kKilled, at(3, "forward", 0, kStart), kStart);
  EXPECT_FALSE(machine.failing());
  EXPECT_EQ(machine.outcome().reason, "killed");
  EXPECT_EQ(machine.outcome().exit_code, 1);
}

TEST(JobMachineTest, OneSignalAsksAllToSaveAndLeave) {
  JobMachine machine(two_ranks(), kStart);
  EXPECT_EQ(kinds(machine.on_signal(kStart)), (std::vector{Action::Kind::kStop, Action::Kind::kStop}));
  for (int rank = 0; rank < 2; ++rank) {
    machine.on_finished(rank, 8, "stopped");
    (void)machine.on_exit(rank, kClean, at(8, "finished", 0, kStart), kStart);
  }
  EXPECT_EQ(machine.outcome().reason, "stopped");
  EXPECT_EQ(machine.outcome().exit_code, 0);
}

TEST(JobMachineTest, AHangNamesWhoIsBehind) {
  JobMachine machine(two_ranks(), kStart);
  const std::vector<Position> positions{at(7, "communication", 12, kStart), at(7, "forward", 9, kStart)};
  EXPECT_TRUE(machine.on_tick(positions, kStart + seconds(29)).empty());
  (void)machine.on_tick(positions, kStart + seconds(30));
  const auto message = machine.outcome().message;
  EXPECT_THAT(message, HasSubstr("no progress for 30.0 s: rank 1 is behind: rank 1 is at step 7, forward, "
                                 "slot 0 (instruction 9)"));
  EXPECT_EQ(machine.outcome().rank, 1);
  EXPECT_EQ(machine.outcome().exit_code, 4);
}

TEST(JobMachineTest, AWorkerThatNeverStartsIsAHang) {
  JobMachine machine(two_ranks(), kStart);
  const std::vector<Position> positions{at(0, "start", 0, Nanoseconds(0)),
                                        at(1, "forward", 0, kStart + seconds(29))};
  (void)machine.on_tick(positions, kStart + seconds(30));
  EXPECT_EQ(machine.outcome().rank, 0);
}

TEST(JobMachineTest, WaitingForTheWriterIsNoHang) {
  JobMachine machine(two_ranks(), kStart);
  (void)machine.on_snapshot(0, 5, 0, kStart);
  (void)machine.on_snapshot(1, 5, 0, kStart);
  const std::vector<Position> positions{at(6, "checkpoint", 0, kStart), at(6, "checkpoint", 0, kStart)};
  (void)machine.on_tick(positions, kStart + seconds(60));
  EXPECT_FALSE(machine.failing());
}

TEST(JobMachineTest, AFailedLastCheckpointFailsTheJob) {
  JobMachine machine(two_ranks(), kStart);
  machine.on_persisted(10, "");
  machine.on_persisted(20, "disk is full");
  EXPECT_EQ(machine.outcome().exit_code, 1);
  EXPECT_THAT(machine.outcome().message, HasSubstr("step 20"));
}

TEST(JobMachineTest, AFailedCheckpointBeforeAGoodOneDoesNot) {
  JobMachine machine(two_ranks(), kStart);
  machine.on_persisted(10, "disk is full");
  machine.on_persisted(20, "");
  EXPECT_EQ(machine.outcome().exit_code, 0);
}

TEST(JobMachineTest, NamesTheRankWhoseSnapshotIsLate) {
  JobMachine machine(two_ranks(), kStart);
  (void)machine.on_snapshot(0, 5, 0, kStart);
  const auto later = kStart + seconds(120);
  const std::vector<Position> positions{at(6, "forward", 0, later), at(6, "forward", 0, later)};
  const auto actions = machine.on_tick(positions, later);
  ASSERT_EQ(kinds(actions), std::vector{Action::Kind::kWarn});
  EXPECT_THAT(actions[0].text, HasSubstr("rank 1 has not delivered"));
  EXPECT_TRUE(machine.on_tick(positions, later).empty());
}

TEST(SealableTest, TakesTheNewestThatAllHave) {
  const auto set = sealable({{10, 20}, {20, 10}}, 5);
  ASSERT_TRUE(set.has_value());
  EXPECT_EQ(set->step, 20);
  EXPECT_EQ(set->slots, (std::vector{1, 0}));
}

TEST(SealableTest, FallsBackToAnOlderCompleteOne) {
  const auto set = sealable({{10, 20}, {-1, 10}}, 5);
  ASSERT_TRUE(set.has_value());
  EXPECT_EQ(set->step, 10);
}

TEST(SealableTest, NothingNewerThanTheLastCommitted) {
  EXPECT_FALSE(sealable({{10}, {10}}, 10).has_value());
}

TEST(SealableTest, NothingThatARankLacks) {
  EXPECT_FALSE(sealable({{10}, {-1}}, 0).has_value());
}

}  // namespace
}  // namespace chiliad::supervise
