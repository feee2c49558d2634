// Groups over NCCL against the contract of all groups, and what is theirs alone. Tests skip what has too few
// GPUs.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <string>
#include <vector>

#include "chiliad/base/error.h"
#include "chiliad/comm/meeting.h"
#include "chiliad/comm/nccl/nccl_group.h"
#include "tests/contract/group/contract.h"

namespace chiliad::comm {
namespace {

using test::Backend;
using test::run_meetings;
using test::run_ranks;

constexpr auto kTimeout = std::chrono::seconds(5);

INSTANTIATE_TEST_SUITE_P(Backends, GroupContract,
                         testing::Values(Backend{"nccl", 1}, Backend{"nccl", 2}, Backend{"nccl", 4},
                                         Backend{"nccl", 8}),
                         [](const auto& param) {
                           return param.param.name + std::to_string(param.param.ranks);
                         });

template <typename Wanted>
std::string thrown_by(const std::function<void()>& call) {
  try {
    call();
  } catch (const Wanted& error) {
    return error.what();
  }
  return "nothing was thrown";
}

class NcclTest : public testing::TestWithParam<Backend> {
 protected:
  void SetUp() override {
    if (num_gpus() < GetParam().ranks)
      GTEST_SKIP() << GetParam().ranks << " GPUs wanted, " << num_gpus() << " here";
  }
};
using NcclOfOneTest = NcclTest;
using NcclOfTwoTest = NcclTest;
INSTANTIATE_TEST_SUITE_P(One, NcclOfOneTest, testing::Values(Backend{"nccl", 1}));
INSTANTIATE_TEST_SUITE_P(Two, NcclOfTwoTest, testing::Values(Backend{"nccl", 2}));

TEST_P(NcclOfOneTest, TensorsOnTheHostAreRefused) {
  run_ranks(GetParam(), [](Group& group) {
    const std::string text = thrown_by<InternalError>(
        [&] { (void)group.all_gather(at::zeros({3}, at::kFloat), at::zeros({3}, at::kFloat)); });
    EXPECT_NE(text.find("all-gather of group all: expected a tensor on cuda:0, got one on cpu"),
              std::string::npos)
        << text;
  });
}

TEST_P(NcclOfOneTest, AGroupCanBeClosedTwice) {
  run_ranks(GetParam(), [](Group& group) {
    group.close();
    EXPECT_NO_THROW(group.close());
  });
}

TEST_P(NcclOfTwoTest, EqualPartsAreGatheredInPlace) {
  run_ranks(GetParam(), [&](Group& group) {
    at::Tensor flat = at::full({6}, -1.0, on(group, GetParam(), at::kBFloat16));
    const at::Tensor own = flat.narrow(0, 3L * group.rank(), 3);
    own.fill_(group.rank());
    group.all_gather_parts(flat, std::vector<int64_t>{3, 3}, own)->wait();
    EXPECT_TRUE(at::equal(flat.to(at::kCPU, at::kFloat), at::tensor({0.F, 0.F, 0.F, 1.F, 1.F, 1.F})));
  });
}

TEST_P(NcclOfTwoTest, AMeetingMakesGroupsOfGpus) {
  const auto body = [&](Meeting& meeting) {
    const auto group = meeting.make_group({"pair", {0, 1}, 1 << 16, 0, meeting.rank(), 2});
    meeting.finish();
    at::Tensor out = at::empty({2}, on(*group, GetParam(), at::kFloat));
    group->all_gather(out, at::full({1}, 1.0 + group->rank(), out.options()))->wait();
    EXPECT_EQ(out.cpu().sum().item<float>(), 3.0F);
    group->close();
  };
  run_meetings({"gloo", 2}, body);
}

TEST_P(NcclOfTwoTest, AMemberThatNeverComesIsLost) {
  const auto body = [&](Meeting& meeting) {
    if (meeting.rank() == 1) return meeting.finish();
    const std::string text = thrown_by<PeerLost>([&] {
      (void)meeting.make_group({"pair", {0, 1}, 1 << 16, 0, 0});
    });
    EXPECT_NE(text.find("connecting"), std::string::npos) << text;
    meeting.finish();
  };
  run_meetings({"gloo", 2}, body, kTimeout);
}

TEST_P(NcclOfTwoTest, ASilentPeerIsLostAtTheDeadline) {
  std::promise<void> noticed;
  const auto body = [&](Group& group) {
    if (group.rank() == 1) return noticed.get_future().wait();
    at::Tensor out = at::zeros({2}, on(group, GetParam(), at::kFloat));
    group.all_gather(out, at::ones({1}, out.options()))->wait();  // the stream waits
    (void)out.cpu();                                              // until the watchdog ends the kernel
    const std::string text =
        thrown_by<PeerLost>([&] { (void)group.all_gather(out, at::ones({1}, out.options())); });
    noticed.set_value();
    EXPECT_NE(text.find("all-gather of group all failed"), std::string::npos) << text;
  };
  run_ranks(GetParam(), body, kTimeout);
}

}  // namespace
}  // namespace chiliad::comm
