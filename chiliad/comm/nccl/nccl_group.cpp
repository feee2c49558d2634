#include "chiliad/comm/nccl/nccl_group.h"

#include <ATen/ATen.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/base/log.h"

namespace chiliad::comm {
namespace {

[[noreturn]] void peer_lost(const char* call, const Membership& membership, const std::string& why) {
  throw PeerLost(fmt::format("rank {}", membership.own()),
                 fmt::format("{} of group {} failed: {}. A peer has gone or did not answer in time", call,
                             membership.name, why.substr(0, why.find('\n'))));
}

/// c10d's watchdog shall abort a group after its deadline and leave the process to us. What the user has set
/// stays.
void set_watchdog_rules() {
  static std::once_flag once;
  std::call_once(once, [] {
    ::setenv("TORCH_NCCL_ASYNC_ERROR_HANDLING", "2", 0);  // abort, no exit
    ::setenv("TORCH_NCCL_ENABLE_MONITORING", "0", 0);     // the supervisor sees a rank that hangs
    ::setenv("TORCH_NCCL_DUMP_ON_TIMEOUT", "0", 0);
    ::setenv("TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC", "50", 0);  // four times this passes before it aborts
  });
}

const char* reason_of(c10d::ErrorType error) {
  switch (error) {
    case c10d::ErrorType::TIMEOUT:
      return "the deadline has passed";
    case c10d::ErrorType::REMOTE_ERROR:
      return "a peer reports an error";
    default:
      return "NCCL reports an error";
  }
}

std::vector<int64_t> to_vector(std::span<const int64_t> counts) {
  return {counts.begin(), counts.end()};
}

class NcclGroup final : public Group {
 public:
  NcclGroup(const c10::intrusive_ptr<c10d::Store>& store, Membership membership, const NcclOptions& options)
      : membership_(std::move(membership)),
        rank_(membership_.rank),
        size_(membership_.size()),
        device_(at::kCUDA, static_cast<c10::DeviceIndex>(options.gpu)) {
    const c10::cuda::CUDAGuard guard(device_);
    auto own_store = c10::make_intrusive<c10d::PrefixStore>(membership_.name + "/nccl", store);
    await_members(*own_store);
    auto nccl = c10d::ProcessGroupNCCL::Options::create();
    nccl->timeout = std::chrono::duration_cast<std::chrono::milliseconds>(options.timeout);
    nccl->group_name = membership_.name;
    if (options.channels > 0) nccl->config.minCTAs = nccl->config.maxCTAs = options.channels;
    group_ = c10::make_intrusive<c10d::ProcessGroupNCCL>(own_store, rank_, size_, nccl);
    group_->setBoundDeviceId(device_);
    group_->eagerConnectSingleDevice(device_);  // threads start here, not in the first step
  }
  ~NcclGroup() override { close(); }
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }

  std::unique_ptr<Work> all_to_all(at::Tensor out, std::span<const int64_t> out_counts, at::Tensor in,
                                   std::span<const int64_t> in_counts) override {
    count(in, in.numel() - in_counts[static_cast<size_t>(rank_)]);
    auto out_splits = to_vector(out_counts);
    auto in_splits = to_vector(in_counts);
    return start("all-to-all", {out, in},
                 [&] { return group_->alltoall_base(out, in, out_splits, in_splits, {}); });
  }

  std::unique_ptr<Work> all_gather(at::Tensor out, at::Tensor in) override {
    count(in, in.numel() * (size_ - 1));
    return start("all-gather", {out, in}, [&] { return group_->_allgather_base(out, in, {}); });
  }

  /// Equal parts: NCCL's all-gather. Others: every rank sends its part to every peer.
  std::unique_ptr<Work> all_gather_parts(at::Tensor out, std::span<const int64_t> counts,
                                         at::Tensor in) override {
    count(in, in.numel() * (size_ - 1));
    const bool equal = std::all_of(counts.begin(), counts.end(), [&](int64_t n) { return n == counts[0]; });
    if (equal) {
      return start("all-gather", {out, in}, [&] { return group_->_allgather_base(out, in, {}); });
    }
    std::vector<at::Tensor> parts;
    int64_t begin = 0;
    for (const int64_t part : counts) {
      parts.push_back(out.narrow(0, begin, part));
      begin += part;
    }
    const auto own = static_cast<size_t>(rank_);
    if (parts[own].const_data_ptr() != in.const_data_ptr()) parts[own].copy_(in);
    std::vector<at::Tensor> sent(static_cast<size_t>(size_), in);
    parts[own] = sent[own] = out.narrow(0, 0, 0);  // to itself
    return start("all-gather", {out, in}, [&] { return group_->alltoall(parts, sent, {}); });
  }

  [[nodiscard]] Traffic traffic() const override { return traffic_; }

  void close() override {
    if (group_ == nullptr) return;
    const auto group = std::move(group_);
    try {
      const c10::cuda::CUDAGuard guard(device_);
      if (group->getError() == c10d::ErrorType::SUCCESS) {
        group->shutdown();
      } else {
        group->abort();
      }
    } catch (const std::exception& error) {  // peers are gone: there is nothing left to leave
      log_warn("rank {}: leaving group {}: {}", membership_.own(), membership_.name, error.what());
    }
  }

  /// Throws where c10d's watchdog has given the group up.
  void expect_healthy(const char* call) const {
    CHILIAD_CHECK(group_ != nullptr, "group {} is closed", membership_.name);
    const auto error = group_->getError();
    if (error != c10d::ErrorType::SUCCESS) peer_lost(call, membership_, reason_of(error));
  }
  [[nodiscard]] const Membership& membership() const { return membership_; }

 private:
  /// A member that never comes would hold NCCL's own meeting up forever.
  void await_members(c10d::Store& store) const {
    const auto key = [](int rank) { return "member/" + std::to_string(rank); };
    store.set(key(rank_), std::vector<uint8_t>{1});
    std::vector<std::string> keys;
    for (int rank = 0; rank < size_; ++rank) keys.push_back(key(rank));
    store.wait(keys);
  }

  template <typename Call>
  std::unique_ptr<Work> start(const char* name, std::vector<at::Tensor> kept, Call call);

  void count(const at::Tensor& tensor, int64_t elements) {
    traffic_.bytes_sent += elements * static_cast<int64_t>(tensor.element_size());
  }

  Membership membership_;
  int rank_;
  int size_;
  at::Device device_;
  c10::intrusive_ptr<c10d::ProcessGroupNCCL> group_;
  Traffic traffic_;
};

class NcclWork final : public Work {
 public:
  NcclWork(c10::intrusive_ptr<c10d::Work> work, const char* call, const NcclGroup& group,
           std::vector<at::Tensor> kept)
      : work_(std::move(work)), call_(call), group_(group), kept_(std::move(kept)) {}

  void wait() override {
    try {
      work_->wait();
    } catch (const c10::DistError& error) {
      peer_lost(call_, group_.membership(), error.what());
    }
    group_.expect_healthy(call_);
    kept_.clear();  // the allocator knows that the stream waits
  }

 private:
  c10::intrusive_ptr<c10d::Work> work_;
  const char* call_;
  const NcclGroup& group_;        // outlives its works
  std::vector<at::Tensor> kept_;  // must outlive the collective
};

template <typename Call>
std::unique_ptr<Work> NcclGroup::start(const char* name, std::vector<at::Tensor> kept, Call call) {
  for (const at::Tensor& tensor : kept) {
    CHILIAD_CHECK(tensor.device() == device_, "{} of group {}: expected a tensor on {}, got one on {}", name,
                  membership_.name, device_.str(), tensor.device().str());
  }
  expect_healthy(name);
  ++traffic_.num_calls;
  try {
    const c10::cuda::CUDAGuard guard(device_);
    return std::make_unique<NcclWork>(call(), name, *this, std::move(kept));
  } catch (const c10::DistError& error) {
    peer_lost(name, membership_, error.what());
  }
}

}  // namespace

int num_gpus() {
  return static_cast<int>(c10::cuda::device_count());
}

std::unique_ptr<Group> make_nccl_group(c10::intrusive_ptr<c10d::Store> store, Membership membership,
                                       const NcclOptions& options) {
  if (options.gpu < 0 || options.gpu >= num_gpus()) {
    throw InvalidInput(fmt::format("rank {}", membership.own()),
                       fmt::format("group {} wants GPU {}, and this process sees {}. Start fewer ranks here",
                                   membership.name, options.gpu, num_gpus()));
  }
  set_watchdog_rules();
  try {
    return std::make_unique<NcclGroup>(store, membership, options);
  } catch (const c10::DistError& error) {
    peer_lost("connecting", membership, error.what());
  }
}

}  // namespace chiliad::comm
