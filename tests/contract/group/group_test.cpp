#include "tests/contract/group/contract.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>

#include "chiliad/base/error.h"
#include "chiliad/comm/meeting.h"
#include "chiliad/comm/nccl/nccl_group.h"

namespace chiliad::comm {
namespace {

using test::Backend;
using test::run_ranks;

int64_t sum(const std::vector<int64_t>& counts) {
  int64_t total = 0;
  for (const int64_t count : counts) total += count;
  return total;
}

/// Memory for inputs: of the group where it has any.
at::Tensor input_memory(Group& group, int64_t count) {
  const at::Tensor shared = group.share(count * 4);
  return shared.defined() ? shared.view(at::kFloat) : at::zeros({count}, at::kFloat);
}

TEST_P(GroupContract, GathersPartsFromMemoryOfTheGroup) {
  run_ranks(GetParam(), [](Group& group) {
    std::vector<int64_t> counts;
    for (int rank = 0; rank < group.size(); ++rank) counts.push_back(rank == 1 ? 0 : rank + 2);
    at::Tensor own = input_memory(group, counts[static_cast<size_t>(group.rank())]);
    at::Tensor out = at::full({sum(counts)}, -1.0, at::kFloat);
    for (int call = 0; call < 20; ++call) {
      group.await_read(own);
      own.fill_(100 * call + group.rank());
      group.all_gather_parts(out, counts, own)->wait();
      const auto* data = out.const_data_ptr<float>();
      for (int rank = 0; rank < group.size(); ++rank) {
        for (int64_t i = 0; i < counts[static_cast<size_t>(rank)]; ++i)
          ASSERT_EQ(*data++, static_cast<float>(100 * call + rank)) << "call " << call;
      }
    }
  });
}

TEST_P(GroupContract, ReducesFromMemoryOfTheGroup) {
  run_ranks(GetParam(), [](Group& group) {
    const at::Tensor memory = input_memory(group, reduced_count(group));
    for (int call = 0; call < 3; ++call)
      check_reduce_scatter(group, at::TensorOptions(at::kFloat), at::kFloat, call > 0, memory);
  });
}

TEST_P(GroupContract, SumsInRankOrderWithTheSameBitsEverywhere) {
  std::vector<double> in_rank_order = {0.0};
  for (int rank = 0; rank < GetParam().ranks; ++rank) in_rank_order[0] += rank == 1 ? 1e16 : 1.0 / (rank + 3);
  run_ranks(GetParam(), [&](Group& group) {
    const std::vector<double> mine = {group.rank() == 1 ? 1e16 : 1.0 / (group.rank() + 3)};
    EXPECT_EQ(sum_over_ranks(group, mine), in_rank_order) << "rank " << group.rank();
  });
}

TEST_P(GroupContract, GathersTextsAlsoEmptyOnes) {
  run_ranks(GetParam(), [](Group& group) {
    const auto text_of = [](int rank) {
      return rank % 2 == 0 ? std::string() : "text of " + std::to_string(rank);
    };
    const auto texts = gather_texts(group, text_of(group.rank()));
    ASSERT_EQ(static_cast<int>(texts.size()), group.size());
    for (int rank = 0; rank < group.size(); ++rank)
      EXPECT_EQ(texts[static_cast<size_t>(rank)], text_of(rank));
  });
}

TEST_P(GroupContract, GathersFullTexts) {
  run_ranks(GetParam(), [](Group& group) {
    const auto texts = gather_texts(group, std::string(1000, static_cast<char>('a' + group.rank())));
    for (int rank = 0; rank < group.size(); ++rank) {
      EXPECT_EQ(texts.at(static_cast<size_t>(rank)), std::string(1000, static_cast<char>('a' + rank)));
    }
  });
}

constexpr auto kTimeout = std::chrono::milliseconds(1500);

void call_once(Group& group) {
  (void)sum_over_ranks(group, std::vector<double>{1.0});
}

INSTANTIATE_TEST_SUITE_P(Backends, GroupContract,
                         testing::Values(Backend{"solo", 1}, Backend{"gloo", 2}, Backend{"gloo", 3},
                                         Backend{"shm", 2}, Backend{"shm", 3}, Backend{"shm", 5},
                                         Backend{"inproc", 2}, Backend{"inproc", 7}),
                         [](const auto& param) {
                           return param.param.name + std::to_string(param.param.ranks);
                         });

TEST(NcclGroupTest, IsRefusedWithoutGpus) {
  if (num_gpus() > 0) GTEST_SKIP() << "there are GPUs";
  const auto body = [](Meeting& meeting) {
    EXPECT_THROW((void)meeting.make_group({"all", {0, 1}, 1 << 16, 0, meeting.rank()}), InvalidInput);
    meeting.finish();
  };
  test::run_meetings({"gloo", 2}, body);
}

TEST(SharedMemoryGroupTest, LatePeerIsNamed) {
  try {
    run_ranks({"shm", 2}, call_once, kTimeout, 1);
    FAIL() << "no exception";
  } catch (const PeerLost& error) {
    EXPECT_EQ(error.rank(), 1);
    EXPECT_NE(std::string(error.what()).find("rank 1 did not start collective 1"), std::string::npos)
        << error.what();
  }
}

TEST(SharedMemoryGroupTest, TransferWithoutRoomIsRefused) {
  const auto body = [](Group& group) {
    at::Tensor out = at::empty({group.size() * 1'000'000L}, at::kFloat);
    EXPECT_THROW((void)group.all_gather(out, at::zeros({1'000'000}, at::kFloat)), InvalidInput);
  };
  run_ranks({"shm", 2}, body, kTimeout);
}

TEST(GlooGroupTest, PeerThatLeftIsLost) {
  EXPECT_THROW(run_ranks({"gloo", 2}, call_once, kTimeout, 1), PeerLost);
}

TEST(GlooGroupTest, SilentPeerIsLostAtTheDeadline) {
  std::promise<void> noticed;
  const auto body = [&](Group& group) {
    if (group.rank() == 1) return noticed.get_future().wait();
    EXPECT_THROW(call_once(group), PeerLost);
    noticed.set_value();
  };
  const auto begin = std::chrono::steady_clock::now();
  run_ranks({"gloo", 2}, body, kTimeout);
  const auto passed = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(passed, kTimeout / 2);
  EXPECT_LT(passed, 10 * kTimeout);
}

TEST(GlooGroupTest, PeerThatNeverComesIsLost) {
  ConnectOptions options;
  options.rank = 1;
  options.size = 2;
  options.port = 1;
  options.timeout = kTimeout;
  EXPECT_THROW((void)meet(options), PeerLost);
}

TEST(GlooGroupTest, LostPeerIsNamedWithTheCall) {
  try {
    run_ranks({"gloo", 2}, call_once, kTimeout, 1);
    FAIL() << "no exception";
  } catch (const PeerLost& error) {
    EXPECT_NE(std::string(error.what()).find("rank 0: all-gather of group all with rank 1 failed"),
              std::string::npos)
        << error.what();
  }
}

TEST(GlooGroupTest, OneRankIsTheSoloGroup) {
  const auto group = meet({})->make_group({"all", {0}});
  EXPECT_EQ(sum_over_ranks(*group, std::vector<double>{2.5}), std::vector<double>{2.5});
}

}  // namespace
}  // namespace chiliad::comm
