#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <mutex>
#include <set>

#include "chiliad/base/error.h"
#include "chiliad/comm/meeting.h"
#include "tests/contract/group/ranks.h"

namespace chiliad::comm {
namespace {

using test::Backend;
using test::run_ranks;

/// What rank `from` sends to rank `to`: uneven, some of it nothing.
int64_t sent(int from, int to) {
  return (from * 3 + to * 2) % 4;
}

float value(int from, int to, int64_t index) {
  return static_cast<float>(1000 * from + 100 * to) + static_cast<float>(index);
}

int64_t sum(const std::vector<int64_t>& counts) {
  int64_t total = 0;
  for (const int64_t count : counts) total += count;
  return total;
}

class GroupContract : public testing::TestWithParam<Backend> {};

TEST_P(GroupContract, KnowsItsRanks) {
  std::mutex mutex;
  std::set<int> ranks;
  run_ranks(GetParam(), [&](Group& group) {
    const std::lock_guard lock(mutex);
    EXPECT_EQ(group.size(), GetParam().ranks);
    ranks.insert(group.rank());
  });
  EXPECT_EQ(static_cast<int>(ranks.size()), GetParam().ranks);
}

TEST_P(GroupContract, ExchangesUnevenParts) {
  run_ranks(GetParam(), [](Group& group) {
    std::vector<int64_t> in_counts;
    std::vector<int64_t> out_counts;
    std::vector<float> in;
    std::vector<float> wanted;
    for (int peer = 0; peer < group.size(); ++peer) {
      in_counts.push_back(sent(group.rank(), peer));
      out_counts.push_back(sent(peer, group.rank()));
      for (int64_t i = 0; i < in_counts.back(); ++i) in.push_back(value(group.rank(), peer, i));
      for (int64_t i = 0; i < out_counts.back(); ++i) wanted.push_back(value(peer, group.rank(), i));
    }
    at::Tensor from = at::empty({sum(in_counts)}, at::kFloat);
    std::copy(in.begin(), in.end(), from.mutable_data_ptr<float>());
    at::Tensor to = at::empty({sum(out_counts)}, at::kFloat);
    group.all_to_all(to, out_counts, from, in_counts)->wait();
    const auto* data = to.const_data_ptr<float>();
    EXPECT_EQ(std::vector<float>(data, data + to.numel()), wanted) << "rank " << group.rank();
  });
}

TEST_P(GroupContract, GathersInRankOrder) {
  run_ranks(GetParam(), [](Group& group) {
    at::Tensor out = at::empty({3L * group.size()}, at::kDouble);
    group.all_gather(out, at::full({3}, 10.0 + group.rank(), at::kDouble))->wait();
    for (int64_t i = 0; i < out.numel(); ++i)
      EXPECT_EQ(out.const_data_ptr<double>()[i], 10.0 + static_cast<double>(i / 3));
  });
}

TEST_P(GroupContract, GathersUnevenPartsInPlace) {
  run_ranks(GetParam(), [](Group& group) {
    std::vector<int64_t> counts;
    for (int rank = 0; rank < group.size(); ++rank) counts.push_back(rank == 1 ? 0 : rank + 2);
    at::Tensor flat = at::full({sum(counts)}, -1.0, at::kFloat);
    int64_t begin = 0;
    for (int rank = 0; rank < group.rank(); ++rank) begin += counts[static_cast<size_t>(rank)];
    const at::Tensor own = flat.narrow(0, begin, counts[static_cast<size_t>(group.rank())]);
    own.fill_(group.rank());
    group.all_gather_parts(flat, counts, own)->wait();
    const auto* data = flat.const_data_ptr<float>();
    for (int rank = 0; rank < group.size(); ++rank) {
      for (int64_t i = 0; i < counts[static_cast<size_t>(rank)]; ++i)
        EXPECT_EQ(*data++, static_cast<float>(rank));
    }
  });
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

/// Summands whose sum depends on the order.
float summand(int rank, int64_t index) {
  return rank == 1 ? 1e8F : 0.7F + static_cast<float>(rank) + 0.25F * static_cast<float>(index % 7);
}

/// What rank `to` of `ranks` gets in element `index` of its part, whose first is `begin` in the inputs.
float wanted_sum(int ranks, int64_t begin, int64_t index, at::ScalarType type, float before) {
  float total = before;
  for (int rank = 0; rank < ranks; ++rank) {
    const at::Tensor part = at::full({1}, summand(rank, begin + index), at::kFloat).to(type).to(at::kFloat);
    total += part.item<float>();
  }
  return total;
}

void check_reduce_scatter(Group& group, at::ScalarType type, bool accumulate, bool shared) {
  std::vector<int64_t> counts;
  int64_t begin = 0;
  for (int rank = 0; rank < group.size(); ++rank) {
    if (rank == group.rank()) begin = sum(counts);
    counts.push_back(rank == 2 ? 0 : 3000 + 5 * rank);
  }
  const int64_t mine = counts[static_cast<size_t>(group.rank())];
  const at::Tensor memory = shared ? input_memory(group, sum(counts)) : at::zeros({sum(counts)}, at::kFloat);
  at::Tensor in = type == at::kFloat ? memory : memory.view(type).narrow(0, 0, sum(counts));
  at::Tensor values = at::empty({sum(counts)}, at::kFloat);
  for (int64_t i = 0; i < sum(counts); ++i) values.mutable_data_ptr<float>()[i] = summand(group.rank(), i);
  in.copy_(values);
  at::Tensor out = at::full({mine}, accumulate ? 0.125F : 777.0F, at::kFloat);
  group.reduce_scatter(out, in, counts, accumulate)->wait();
  group.await_read(in);
  for (int64_t i = 0; i < mine; i += 501) {
    ASSERT_EQ(out.const_data_ptr<float>()[i],
              wanted_sum(group.size(), begin, i, type, accumulate ? 0.125F : 0.0F))
        << "rank " << group.rank() << " element " << i;
  }
}

TEST_P(GroupContract, ReducesInRankOrder) {
  run_ranks(GetParam(), [](Group& group) { check_reduce_scatter(group, at::kFloat, false, false); });
}
TEST_P(GroupContract, ReducesOntoWhatIsThere) {
  run_ranks(GetParam(), [](Group& group) { check_reduce_scatter(group, at::kFloat, true, false); });
}
TEST_P(GroupContract, ReducesHalfPrecisionInFullPrecision) {
  run_ranks(GetParam(), [](Group& group) { check_reduce_scatter(group, at::kBFloat16, false, false); });
}
TEST_P(GroupContract, ReducesFromMemoryOfTheGroup) {
  run_ranks(GetParam(), [](Group& group) {
    for (int call = 0; call < 3; ++call) check_reduce_scatter(group, at::kFloat, call > 0, true);
  });
}

TEST_P(GroupContract, RunsOutstandingCallsInOrder) {
  constexpr int kCalls = 40;
  run_ranks(GetParam(), [](Group& group) {
    std::vector<at::Tensor> outs;
    std::vector<std::unique_ptr<Work>> started;
    for (int call = 0; call < kCalls; ++call) {
      outs.push_back(at::empty({group.size() * (1L + call % 5)}, at::kFloat));
      started.push_back(
          group.all_gather(outs.back(), at::full({1 + call % 5}, 100.0 * call + group.rank(), at::kFloat)));
    }
    for (int call = kCalls - 1; call >= 0; --call) started[static_cast<size_t>(call)]->wait();
    for (int call = 0; call < kCalls; ++call) {
      const at::Tensor& out = outs[static_cast<size_t>(call)];
      const int64_t last = out.numel() - 1;
      EXPECT_EQ(out.const_data_ptr<float>()[last], static_cast<float>(100 * call + group.size() - 1))
          << "call " << call;
    }
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

TEST_P(GroupContract, CountsWhatGoesToOthers) {
  run_ranks(GetParam(), [](Group& group) {
    const int64_t others = group.size() - 1;
    at::Tensor out = at::empty({5L * group.size()}, at::kFloat);
    group.all_gather(out, at::zeros({5}, at::kFloat))->wait();
    EXPECT_EQ(group.traffic().bytes_sent, 5 * 4 * others);
    const std::vector<int64_t> counts(static_cast<size_t>(group.size()), 3);
    at::Tensor from = at::zeros({3L * group.size()}, at::kDouble);
    at::Tensor to = at::zeros({3L * group.size()}, at::kDouble);
    group.all_to_all(to, counts, from, counts)->wait();
    group.all_gather_parts(to, counts, from.narrow(0, 0, 3))->wait();
    EXPECT_EQ(group.traffic().bytes_sent, (5 * 4 + 2 * 3 * 8) * others);
    EXPECT_EQ(group.traffic().num_calls, 3);
  });
}

constexpr auto kTimeout = std::chrono::milliseconds(1500);

void call_once(Group& group) {
  (void)sum_over_ranks(group, std::vector<double>{1.0});
}

TEST_P(GroupContract, SurvivesMoreTrafficThanItHasRoomFor) {
  constexpr int64_t kCount = 30'000;  // the shared memory of a rank holds eight of these
  run_ranks(GetParam(), [](Group& group) {
    std::vector<at::Tensor> outs;
    std::vector<std::unique_ptr<Work>> started;
    for (int call = 0; call < 30; ++call) {
      outs.push_back(at::empty({group.size() * kCount}, at::kFloat));
      started.push_back(
          group.all_gather(outs.back(), at::full({kCount}, 100.0 * call + group.rank(), at::kFloat)));
    }
    for (int call = 0; call < 30; ++call) {
      started[static_cast<size_t>(call)]->wait();
      const auto* data = outs[static_cast<size_t>(call)].const_data_ptr<float>();
      for (int rank = 0; rank < group.size(); ++rank) {
        EXPECT_EQ(data[rank * kCount], static_cast<float>(100 * call + rank)) << "call " << call;
        EXPECT_EQ(data[(rank + 1) * kCount - 1], static_cast<float>(100 * call + rank)) << "call " << call;
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Backends, GroupContract,
                         testing::Values(Backend{"solo", 1}, Backend{"gloo", 2}, Backend{"gloo", 3},
                                         Backend{"shm", 2}, Backend{"shm", 3}, Backend{"shm", 5},
                                         Backend{"inproc", 2}, Backend{"inproc", 7}),
                         [](const auto& param) {
                           return param.param.name + std::to_string(param.param.ranks);
                         });

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
    EXPECT_NE(std::string(error.what()).find("rank 0: all-gather of group all with rank 1 failed"), std::string::npos)
        << error.what();
  }
}

TEST(GlooGroupTest, OneRankIsTheSoloGroup) {
  const auto group = meet({})->make_group({"all", {0}});
  EXPECT_EQ(sum_over_ranks(*group, std::vector<double>{2.5}), std::vector<double>{2.5});
}

}  // namespace
}  // namespace chiliad::comm
