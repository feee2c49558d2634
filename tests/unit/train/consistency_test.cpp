#include "chiliad/train/consistency.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <thread>

#include "chiliad/comm/meeting.h"

namespace chiliad::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

StepClaim claim(int64_t step, uint64_t items, uint64_t program) {
  return {step, {1, items}, program};
}

/// What `call` throws, which must be a mismatch.
RankMismatch mismatch_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const RankMismatch& error) {
    return error;
  }
  return {ErrorKind::kInternal, "nowhere", "nothing was thrown", {}};
}

TEST(StepClaimTest, NothingIsSaidWhereAllAgree) {
  const std::vector<StepClaim> claims(3, claim(7, 5, 9));
  EXPECT_NO_THROW(check_claims(7, claims));
}

TEST(StepClaimTest, NamesTheRankWithOtherItems) {
  const std::vector<StepClaim> claims{claim(7, 5, 9), claim(7, 5, 9), claim(7, 6, 9)};
  const auto error = mismatch_of([&] { check_claims(7, claims); });
  EXPECT_THAT(error.ranks(), ElementsAre(2));
  EXPECT_THAT(error.what(), HasSubstr("step 7: the items must be the same on all ranks: rank 2 has items"));
}

TEST(StepClaimTest, NamesTheRankWithAnotherProgram) {
  const std::vector<StepClaim> claims{claim(7, 5, 8), claim(7, 5, 9), claim(7, 5, 9)};
  const auto error = mismatch_of([&] { check_claims(7, claims); });
  EXPECT_THAT(error.ranks(), ElementsAre(0));
  EXPECT_THAT(error.what(), HasSubstr("rank 0 has program 0000000000000008, the other 2 have program "
                                      "0000000000000009"));
}

TEST(StepClaimTest, AnotherStepIsSaidBeforeItsItems) {
  const std::vector<StepClaim> claims{claim(7, 5, 9), claim(8, 6, 10), claim(7, 5, 9)};
  EXPECT_THAT(mismatch_of([&] { check_claims(7, claims); }).what(), HasSubstr("the number of the step"));
}

TEST(StepClaimTest, OfTwoRanksBothAreSaid) {
  const std::vector<StepClaim> claims{claim(7, 5, 8), claim(7, 5, 9)};
  const auto error = mismatch_of([&] { check_claims(7, claims); });
  EXPECT_THAT(error.ranks(), ElementsAre(0, 1));
  EXPECT_THAT(error.what(), HasSubstr("rank 0 has program 0000000000000008, rank 1 has program"));
}

spec::RunFile run_file(const std::vector<std::string>& settings = {}) {
  return spec::parse_run_file("version: 1\ndata: {index: none}\n", "run.yaml", "run", settings);
}

/// The errors of ranks that compare these identities, [rank].
std::vector<RankMismatch> compare(const std::vector<Identity>& identities) {
  const auto size = static_cast<int>(identities.size());
  const auto meetings = comm::meet_in_process(size, std::chrono::seconds(30));
  std::vector<int> all(identities.size());
  std::iota(all.begin(), all.end(), 0);
  std::vector<RankMismatch> errors(identities.size(),
                                   RankMismatch(ErrorKind::kInternal, "nowhere", "nothing was thrown", {}));
  {
    std::vector<std::jthread> threads;
    for (size_t rank = 0; rank < identities.size(); ++rank) {
      threads.emplace_back([&, rank] {
        const auto world = meetings[rank]->make_group({"start", all, 1 << 20});
        errors[rank] = mismatch_of([&] { check_identity(*world, identities[rank]); });
        meetings[rank]->finish();
      });
    }
  }
  return errors;
}

TEST(IdentityTest, IsTheSameForAllRanksOfAProgram) {
  const auto mine = own_identity(run_file(), "");
  for (const auto& error : compare({mine, mine, mine})) EXPECT_THAT(error.ranks(), ElementsAre());
}

TEST(IdentityTest, HasABuildOrADigest) {
  EXPECT_THAT(own_identity(run_file(), "").program, testing::MatchesRegex("(build|digest) [0-9a-f]{16}"));
}

TEST(IdentityTest, FoldersMayDifferByHost) {
  const auto mine = own_identity(run_file(), "");
  const auto other = own_identity(run_file({"run.dir=elsewhere", "data.index=/mnt/index"}), "");
  EXPECT_EQ(mine.config, other.config);
}

TEST(IdentityTest, NamesRankAndKeyOfAnotherConfiguration) {
  const auto mine = own_identity(run_file(), "");
  const auto other = own_identity(run_file({"model.width=384", "optimizer.lr=0.5"}), "");
  for (const auto& error : compare({mine, other, mine})) {
    EXPECT_THAT(error.ranks(), ElementsAre(1));
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidInput);
    EXPECT_THAT(error.what(),
                HasSubstr("rank 1: configuration: expected the same on all 3 ranks, got another "
                          "one: model.width is 384 on rank 1 and 256 on rank 0"));
    EXPECT_THAT(error.what(), HasSubstr("optimizer.lr is 0.5 on rank 1"));
  }
}

TEST(IdentityTest, NamesAnotherProgram) {
  const auto mine = own_identity(run_file(), "");
  auto other = mine;
  other.program = "build 0123456789abcdef";
  for (const auto& error : compare({mine, mine, other})) {
    EXPECT_THAT(error.what(),
                HasSubstr("rank 2: program: expected the same on all 3 ranks, got: rank 2 has build "
                          "0123456789abcdef, the other 2 have " +
                          mine.program + ". Install the same build"));
  }
}

TEST(IdentityTest, NamesAnotherLibtorch) {
  const auto mine = own_identity(run_file(), "");
  auto other = mine;
  other.torch = "2.11.0 (17 bytes)";
  EXPECT_THAT(compare({other, mine, mine}).front().what(),
              HasSubstr("rank 0: libtorch: expected the same on all 3 ranks, got: rank 0 has 2.11.0"));
}

TEST(IdentityTest, NamesAnotherCheckpoint) {
  const auto mine = own_identity(run_file(), "/here/step-8.g0");
  EXPECT_EQ(mine.start, own_identity(run_file(), "/there/step-8.g0").start);
  const auto other = own_identity(run_file(), "/here/step-4.g0");
  EXPECT_THAT(compare({mine, mine, other}).front().what(),
              HasSubstr("rank 2 has step-4.g0, the other 2 have step-8.g0"));
}

}  // namespace
}  // namespace chiliad::train
