#include "tests/contract/group/contract.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "chiliad/comm/nccl/nccl_group.h"

namespace chiliad::comm {

void GroupContract::SetUp() {
  if (GetParam().name == "nccl" && num_gpus() < GetParam().ranks)
    GTEST_SKIP() << GetParam().ranks << " GPUs wanted, " << num_gpus() << " here";
}

at::TensorOptions on(const Group& group, const test::Backend& backend, at::ScalarType type) {
  return at::TensorOptions(type).device(test::device_of(backend, group.rank()));
}

namespace {

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

/// Summands whose sum depends on the order.
float summand(int rank, int64_t index) {
  return rank == 1 ? 1e8F : 0.7F + static_cast<float>(rank) + 0.25F * static_cast<float>(index % 7);
}

/// What a rank gets in element `index` of the inputs.
float wanted_sum(int ranks, int64_t index, at::ScalarType type, float before) {
  float total = before;
  for (int rank = 0; rank < ranks; ++rank) {
    const at::Tensor part = at::full({1}, summand(rank, index), at::kFloat).to(type).to(at::kFloat);
    total += part.item<float>();
  }
  return total;
}

std::vector<int64_t> reduced_counts(const Group& group) {
  std::vector<int64_t> counts;
  for (int rank = 0; rank < group.size(); ++rank) counts.push_back(rank == 2 ? 0 : 3000 + 5 * rank);
  return counts;
}

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
  run_ranks(GetParam(), [&](Group& group) {
    const auto floats = on(group, GetParam(), at::kFloat);
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
    at::Tensor to = at::empty({sum(out_counts)}, floats);
    group.all_to_all(to, out_counts, from.to(floats.device()), in_counts)->wait();
    const at::Tensor got = to.cpu();
    const auto* data = got.const_data_ptr<float>();
    EXPECT_EQ(std::vector<float>(data, data + got.numel()), wanted) << "rank " << group.rank();
  });
}

TEST_P(GroupContract, GathersInRankOrder) {
  run_ranks(GetParam(), [&](Group& group) {
    const auto doubles = on(group, GetParam(), at::kDouble);
    at::Tensor out = at::empty({3L * group.size()}, doubles);
    group.all_gather(out, at::full({3}, 10.0 + group.rank(), doubles))->wait();
    const at::Tensor got = out.cpu();
    for (int64_t i = 0; i < got.numel(); ++i)
      EXPECT_EQ(got.const_data_ptr<double>()[i], 10.0 + static_cast<double>(i / 3));
  });
}

TEST_P(GroupContract, GathersUnevenPartsInPlace) {
  run_ranks(GetParam(), [&](Group& group) {
    const auto floats = on(group, GetParam(), at::kFloat);
    std::vector<int64_t> counts;
    for (int rank = 0; rank < group.size(); ++rank) counts.push_back(rank == 1 ? 0 : rank + 2);
    at::Tensor flat = at::full({sum(counts)}, -1.0, floats);
    int64_t begin = 0;
    for (int rank = 0; rank < group.rank(); ++rank) begin += counts[static_cast<size_t>(rank)];
    const at::Tensor own = flat.narrow(0, begin, counts[static_cast<size_t>(group.rank())]);
    own.fill_(group.rank());
    group.all_gather_parts(flat, counts, own)->wait();
    const at::Tensor got = flat.cpu();
    const auto* data = got.const_data_ptr<float>();
    for (int rank = 0; rank < group.size(); ++rank) {
      for (int64_t i = 0; i < counts[static_cast<size_t>(rank)]; ++i)
        EXPECT_EQ(*data++, static_cast<float>(rank));
    }
  });
}

TEST_P(GroupContract, RunsOutstandingCallsInOrder) {
  constexpr int kCalls = 40;
  run_ranks(GetParam(), [&](Group& group) {
    const auto floats = on(group, GetParam(), at::kFloat);
    std::vector<at::Tensor> outs;
    std::vector<std::unique_ptr<Work>> started;
    for (int call = 0; call < kCalls; ++call) {
      outs.push_back(at::empty({group.size() * (1L + call % 5)}, floats));
      started.push_back(
          group.all_gather(outs.back(), at::full({1 + call % 5}, 100.0 * call + group.rank(), floats)));
    }
    for (int call = kCalls - 1; call >= 0; --call) started[static_cast<size_t>(call)]->wait();
    for (int call = 0; call < kCalls; ++call) {
      const at::Tensor out = outs[static_cast<size_t>(call)].cpu();
      const int64_t last = out.numel() - 1;
      EXPECT_EQ(out.const_data_ptr<float>()[last], static_cast<float>(100 * call + group.size() - 1))
          << "call " << call;
    }
  });
}

TEST_P(GroupContract, CountsWhatGoesToOthers) {
  run_ranks(GetParam(), [&](Group& group) {
    const auto floats = on(group, GetParam(), at::kFloat);
    const auto doubles = floats.dtype(at::kDouble);
    const int64_t others = group.size() - 1;
    at::Tensor out = at::empty({5L * group.size()}, floats);
    group.all_gather(out, at::zeros({5}, floats))->wait();
    EXPECT_EQ(group.traffic().bytes_sent, 5 * 4 * others);
    const std::vector<int64_t> counts(static_cast<size_t>(group.size()), 3);
    at::Tensor from = at::zeros({3L * group.size()}, doubles);
    at::Tensor to = at::zeros({3L * group.size()}, doubles);
    group.all_to_all(to, counts, from, counts)->wait();
    group.all_gather_parts(to, counts, from.narrow(0, 0, 3))->wait();
    EXPECT_EQ(group.traffic().bytes_sent, (5 * 4 + 2 * 3 * 8) * others);
    EXPECT_EQ(group.traffic().num_calls, 3);
  });
}

TEST_P(GroupContract, SurvivesMoreTrafficThanItHasRoomFor) {
  constexpr int64_t kCount = 30'000;  // the shared memory of a rank holds eight of these
  run_ranks(GetParam(), [&](Group& group) {
    const auto floats = on(group, GetParam(), at::kFloat);
    std::vector<at::Tensor> outs;
    std::vector<std::unique_ptr<Work>> started;
    for (int call = 0; call < 30; ++call) {
      outs.push_back(at::empty({group.size() * kCount}, floats));
      started.push_back(
          group.all_gather(outs.back(), at::full({kCount}, 100.0 * call + group.rank(), floats)));
    }
    for (int call = 0; call < 30; ++call) {
      started[static_cast<size_t>(call)]->wait();
      const at::Tensor got = outs[static_cast<size_t>(call)].cpu();
      const auto* data = got.const_data_ptr<float>();
      for (int rank = 0; rank < group.size(); ++rank) {
        EXPECT_EQ(data[rank * kCount], static_cast<float>(100 * call + rank)) << "call " << call;
        EXPECT_EQ(data[(rank + 1) * kCount - 1], static_cast<float>(100 * call + rank)) << "call " << call;
      }
    }
  });
}

TEST_P(GroupContract, ReducesInRankOrder) {
  run_ranks(GetParam(), [&](Group& group) {
    check_reduce_scatter(group, on(group, GetParam(), at::kFloat), at::kFloat, false);
  });
}
TEST_P(GroupContract, ReducesOntoWhatIsThere) {
  run_ranks(GetParam(), [&](Group& group) {
    check_reduce_scatter(group, on(group, GetParam(), at::kFloat), at::kFloat, true);
  });
}
TEST_P(GroupContract, ReducesHalfPrecisionInFullPrecision) {
  run_ranks(GetParam(), [&](Group& group) {
    check_reduce_scatter(group, on(group, GetParam(), at::kFloat), at::kBFloat16, false);
  });
}

}  // namespace

int64_t reduced_count(const Group& group) {
  return sum(reduced_counts(group));
}

void check_reduce_scatter(Group& group, const at::TensorOptions& floats, at::ScalarType type, bool accumulate,
                          const at::Tensor& memory) {
  const auto counts = reduced_counts(group);
  int64_t begin = 0;
  for (int rank = 0; rank < group.rank(); ++rank) begin += counts[static_cast<size_t>(rank)];
  const int64_t mine = counts[static_cast<size_t>(group.rank())];
  at::Tensor values = at::empty({sum(counts)}, at::kFloat);
  for (int64_t i = 0; i < sum(counts); ++i) values.mutable_data_ptr<float>()[i] = summand(group.rank(), i);
  at::Tensor in =
      memory.defined() ? memory.narrow(0, 0, sum(counts)) : at::empty({sum(counts)}, floats.dtype(type));
  in.copy_(values);
  const float before = accumulate ? 0.125F : 777.0F;
  at::Tensor out = at::full({mine}, before, floats);
  group.reduce_scatter(out, in, counts, accumulate)->wait();
  group.await_read(in);
  const at::Tensor got = out.cpu();
  for (int64_t i = 0; i < mine; i += 501) {
    ASSERT_EQ(got.const_data_ptr<float>()[i],
              wanted_sum(group.size(), begin + i, type, accumulate ? before : 0.0F))
        << "rank " << group.rank() << " element " << i;
  }
}

}  // namespace chiliad::comm
