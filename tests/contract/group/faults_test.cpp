// What a group does when a peer does not do its part, for every kind of group that has peers.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "chiliad/base/error.h"
#include "chiliad/comm/meeting.h"
#include "tests/contract/group/ranks.h"

namespace chiliad::comm {
namespace {

using test::Backend;
using test::run_meetings;
using test::run_ranks;

constexpr auto kTimeout = std::chrono::milliseconds(1000);

double sum_of_ones(Group& group) {
  return sum_over_ranks(group, std::vector<double>{1.0}).front();
}

/// What PeerLost says, and whom it names.
struct Loss {
  std::string text;
  int rank = -1;
};

Loss loss_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const PeerLost& error) {
    return {error.what(), error.rank()};
  }
  return {"no PeerLost"};
}

std::string internal_error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const InternalError& error) {
    return error.what();
  }
  return "no InternalError";
}

std::string name_of(const testing::TestParamInfo<Backend>& given) {
  return given.param.name + std::to_string(given.param.ranks);
}

class GroupFaults : public testing::TestWithParam<Backend> {};

TEST_P(GroupFaults, APeerThatNeverStartsIsLostAtTheDeadline) {
  const int silent = GetParam().ranks - 1;
  std::vector<std::promise<void>> noticed(static_cast<size_t>(GetParam().ranks));
  const auto body = [&](Group& group) {
    if (group.rank() == silent) {
      for (int rank = 0; rank < silent; ++rank) noticed[static_cast<size_t>(rank)].get_future().wait();
      return;
    }
    const auto begin = std::chrono::steady_clock::now();
    const auto loss = loss_of([&] { static_cast<void>(sum_of_ones(group)); });
    const auto passed = std::chrono::steady_clock::now() - begin;
    noticed[static_cast<size_t>(group.rank())].set_value();
    EXPECT_NE(loss.text.find("of group all"), std::string::npos) << loss.text;
    EXPECT_GE(passed, kTimeout / 2);
    EXPECT_LT(passed, 10 * kTimeout);
  };
  run_ranks(GetParam(), body, kTimeout);
}

TEST_P(GroupFaults, ASlowPeerIsWaitedFor) {
  std::promise<void> started;
  auto first_has_started = started.get_future().share();
  const auto body = [&](Group& group) {
    if (group.rank() == 0) started.set_value();
    if (group.rank() == group.size() - 1) {
      first_has_started.wait();
      const auto ready = std::chrono::steady_clock::now() + kTimeout / 4;
      while (std::chrono::steady_clock::now() < ready) std::this_thread::yield();
    }
    EXPECT_EQ(sum_of_ones(group), group.size());
  };
  run_ranks(GetParam(), body, kTimeout);
}

TEST_P(GroupFaults, AGroupOfOneNeedsNobody) {
  const auto body = [](Meeting& meeting) {
    const auto own = meeting.make_group({"own/" + std::to_string(meeting.rank()), {meeting.rank()}, 1 << 16});
    meeting.finish();
    EXPECT_EQ(own->size(), 1);
    EXPECT_EQ(sum_of_ones(*own), 1.0);
    own->close();
  };
  run_meetings(GetParam(), body);
}

INSTANTIATE_TEST_SUITE_P(Backends, GroupFaults,
                         testing::Values(Backend{"gloo", 2}, Backend{"gloo", 3}, Backend{"shm", 2},
                                         Backend{"shm", 3}, Backend{"inproc", 2}, Backend{"inproc", 4}),
                         name_of);

/// Groups over shared memory know the rank and compare the sizes.
class SharedMemoryFaults : public testing::TestWithParam<Backend> {};

TEST_P(SharedMemoryFaults, ALostPeerIsNamedWithTheCall) {
  std::promise<void> noticed;
  const auto body = [&](Group& group) {
    EXPECT_EQ(sum_of_ones(group), group.size());
    if (group.rank() == 1) return noticed.get_future().wait();
    if (group.rank() > 1) return;
    const auto loss = loss_of([&] { static_cast<void>(sum_of_ones(group)); });
    noticed.set_value();
    EXPECT_EQ(loss.rank, 1);
    EXPECT_NE(loss.text.find("rank 1 did not start collective 2 of group all"), std::string::npos)
        << loss.text;
  };
  run_ranks({GetParam().name, 2}, body, kTimeout);
}

TEST_P(SharedMemoryFaults, ALostPeerIsNamedByItsRankInTheJob) {
  std::promise<void> noticed;
  const auto body = [&](Meeting& meeting) {
    if (meeting.rank() == 0) return meeting.finish();
    const auto pair = meeting.make_group({"pair", {1, 2}, 1 << 16});
    meeting.finish();
    if (meeting.rank() == 2) return noticed.get_future().wait();
    const auto loss = loss_of([&] { static_cast<void>(sum_of_ones(*pair)); });
    noticed.set_value();
    EXPECT_EQ(loss.rank, 2) << loss.text;
  };
  run_meetings({GetParam().name, 3}, body, kTimeout);
}

TEST_P(SharedMemoryFaults, AGatherOfOtherCountsIsSeen) {
  const auto body = [](Group& group) {
    // Rank 1 takes its own part for longer than the others do.
    const std::vector<int64_t> counts = {2, group.rank() == 1 ? 4 : 3, 1};
    const at::Tensor flat = at::zeros({group.rank() == 1 ? 7 : 6}, at::kFloat);
    const at::Tensor own = flat.narrow(0, 0, counts[static_cast<size_t>(group.rank())]);
    const auto work = group.all_gather_parts(flat, counts, own);
    if (group.rank() == 1) return work->wait();
    EXPECT_EQ(internal_error_of([&] { work->wait(); }),
              "rank " + std::to_string(group.rank()) +
                  ": collective 1 of group all: expected 12 bytes from rank 1, got 16");
  };
  run_ranks({GetParam().name, 3}, body, kTimeout);
}

TEST_P(SharedMemoryFaults, AnExchangeOfOtherCountsIsSeen) {
  const auto body = [](Group& group) {
    const bool odd = group.rank() == 1;
    const std::vector<int64_t> in_counts = odd ? std::vector<int64_t>{0, 2} : std::vector<int64_t>{2, 2};
    const std::vector<int64_t> out_counts = {2, 2};
    const at::Tensor out = at::zeros({4}, at::kDouble);
    const auto work = group.all_to_all(out, out_counts, at::zeros({odd ? 2 : 4}, at::kDouble), in_counts);
    if (odd) return work->wait();
    EXPECT_EQ(internal_error_of([&] { work->wait(); }),
              "rank 0: collective 1 of group all: expected 16 bytes from rank 1, got 0");
  };
  run_ranks({GetParam().name, 2}, body, kTimeout);
}

TEST_P(SharedMemoryFaults, AnotherElementTypeIsSeen) {
  const auto body = [](Group& group) {
    const auto type = group.rank() == 0 ? at::kDouble : at::kFloat;
    const auto work = group.all_gather(at::zeros({6}, type), at::zeros({3}, type));
    EXPECT_NE(internal_error_of([&] { work->wait(); }), "no InternalError");
  };
  run_ranks({GetParam().name, 2}, body, kTimeout);
}

INSTANTIATE_TEST_SUITE_P(Backends, SharedMemoryFaults, testing::Values(Backend{"shm"}, Backend{"inproc"}),
                         [](const auto& given) { return given.param.name; });

class SubGroups : public testing::TestWithParam<Backend> {
 protected:
  static std::unique_ptr<Group> make_pair(Meeting& meeting) {
    const int first = meeting.rank() / 2 * 2;
    return meeting.make_group({"pair/" + std::to_string(first), {first, first + 1}, 1 << 16});
  }
  static std::unique_ptr<Group> make_world(Meeting& meeting) {
    return meeting.make_group({"world", {0, 1, 2, 3}, 1 << 16});
  }
  static double sum_of_ranks(Group& group, int rank) {
    return sum_over_ranks(group, std::vector<double>{static_cast<double>(rank)}).front();
  }
};

TEST_P(SubGroups, DisjointPairsWorkAtOnce) {
  const auto body = [](Meeting& meeting) {
    const auto pair = make_pair(meeting);
    meeting.finish();
    const int first = meeting.rank() / 2 * 2;
    EXPECT_EQ(pair->rank(), meeting.rank() % 2);
    for (int call = 0; call < 20; ++call) EXPECT_EQ(sum_of_ranks(*pair, meeting.rank()), 2 * first + 1);
    pair->close();
  };
  run_meetings({GetParam().name, 4}, body);
}

TEST_P(SubGroups, APairAndTheWorldInterleave) {
  const auto body = [](Meeting& meeting) {
    const auto world = make_world(meeting);
    const auto pair = make_pair(meeting);
    meeting.finish();
    const int first = meeting.rank() / 2 * 2;
    at::Tensor all = at::empty({4}, at::kFloat);
    at::Tensor two = at::empty({2}, at::kFloat);
    const at::Tensor own = at::full({1}, meeting.rank(), at::kFloat);
    for (int call = 0; call < 10; ++call) {
      const auto in_world = world->all_gather(all, own);
      const auto in_pair = pair->all_gather(two, own);
      in_pair->wait();
      in_world->wait();
      EXPECT_EQ(two.const_data_ptr<float>()[1], static_cast<float>(first + 1));
      EXPECT_EQ(all.const_data_ptr<float>()[3], 3.0F);
    }
    pair->close();
    world->close();
  };
  run_meetings({GetParam().name, 4}, body);
}

TEST_P(SubGroups, APairWorksOnWhileTheOtherLosesAPeer) {
  std::promise<void> noticed;
  const auto body = [&](Meeting& meeting) {
    const auto pair = make_pair(meeting);
    meeting.finish();
    if (meeting.rank() == 1) return noticed.get_future().wait();
    if (meeting.rank() == 0) {
      const auto loss = loss_of([&] { static_cast<void>(sum_of_ones(*pair)); });
      noticed.set_value();
      EXPECT_NE(loss.text.find("of group pair/0"), std::string::npos) << loss.text;
      return;
    }
    for (int call = 0; call < 20; ++call) EXPECT_EQ(sum_of_ranks(*pair, meeting.rank()), 5.0);
  };
  run_meetings({GetParam().name, 4}, body, kTimeout);
}

INSTANTIATE_TEST_SUITE_P(Backends, SubGroups,
                         testing::Values(Backend{"gloo"}, Backend{"shm"}, Backend{"inproc"}),
                         [](const auto& given) { return given.param.name; });

}  // namespace
}  // namespace chiliad::comm
