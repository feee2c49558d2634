#include <ATen/ATen.h>
#include <gloo/config.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <exception>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/comm/gloo/gloo_group.h"
#include "chiliad/comm/group.h"

namespace chiliad::comm {
namespace {

[[noreturn]] void peer_lost(const char* call, const Membership& membership, const std::exception& error) {
  std::string text = error.what();
  text = text.substr(0, text.find('\n'));
  throw PeerLost(fmt::format("rank {}", membership.own()),
                 fmt::format("{} of group {} failed: {}. A peer has gone or did not answer in time", call,
                             membership.name, text));
}

class GlooWork final : public Work {
 public:
  GlooWork(c10::intrusive_ptr<c10d::Work> work, const char* call, const Membership& membership,
           std::vector<at::Tensor> kept)
      : work_(std::move(work)), call_(call), membership_(membership), kept_(std::move(kept)) {}

  void wait() override {
    try {
      work_->wait();
    } catch (const std::exception& error) {
      peer_lost(call_, membership_, error);
    }
    kept_.clear();
  }

 private:
  c10::intrusive_ptr<c10d::Work> work_;
  const char* call_;
  const Membership& membership_;  // of the group, which outlives its works
  std::vector<at::Tensor> kept_;  // must outlive the collective
};

std::vector<int64_t> to_vector(std::span<const int64_t> counts) {
  return {counts.begin(), counts.end()};
}

class GlooGroup final : public Group {
 public:
  GlooGroup(c10::intrusive_ptr<c10d::Store> store, Membership membership, const GlooOptions& options)
      : membership_(std::move(membership)),
        rank_(membership_.rank),
        size_(membership_.size()),
        store_(std::move(store)) {
    auto gloo_options = c10d::ProcessGroupGloo::Options::create();
    gloo_options->timeout = std::chrono::duration_cast<std::chrono::milliseconds>(options.timeout);
    gloo_options->threads = 1;  // in order
    gloo_options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(options.host));
    group_ = c10::make_intrusive<c10d::ProcessGroupGloo>(
        c10::make_intrusive<c10d::PrefixStore>(membership_.name, store_), rank_, size_, gloo_options);
  }

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

  std::unique_ptr<Work> all_gather_parts(at::Tensor flat, std::span<const int64_t> counts) override {
    const auto splits = to_vector(counts);
    int64_t begin = 0;
    for (int r = 0; r < rank_; ++r) begin += splits[static_cast<size_t>(r)];
    const int64_t mine = splits[static_cast<size_t>(rank_)];
    const at::Tensor own = flat.narrow(0, begin, mine);
    at::Tensor in = own.repeat({size_});
    count(in, mine * (size_ - 1));
    auto in_splits = std::vector<int64_t>(static_cast<size_t>(size_), mine);
    auto out_splits = splits;
    return start("all-gather", {flat, in},
                 [&] { return group_->alltoall_base(flat, in, out_splits, in_splits, {}); });
  }

  [[nodiscard]] Traffic traffic() const override { return traffic_; }

  void close() override {
    group_.reset();
    store_.reset();
  }

 private:
  template <typename Call>
  std::unique_ptr<Work> start(const char* name, std::vector<at::Tensor> kept, Call call) {
    ++traffic_.num_calls;
    try {
      return std::make_unique<GlooWork>(call(), name, membership_, std::move(kept));
    } catch (const std::exception& error) {
      peer_lost(name, membership_, error);
    }
  }
  void count(const at::Tensor& tensor, int64_t elements) {
    traffic_.bytes_sent += elements * static_cast<int64_t>(tensor.element_size());
  }

  Membership membership_;
  int rank_;
  int size_;
  c10::intrusive_ptr<c10d::Store> store_;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group_;
  Traffic traffic_;
};

}  // namespace

std::unique_ptr<Group> make_gloo_group(c10::intrusive_ptr<c10d::Store> store, Membership membership,
                                       const GlooOptions& options) {
  try {
    return std::make_unique<GlooGroup>(std::move(store), membership, options);
  } catch (const std::exception& error) {
    peer_lost("connecting", membership, error);
  }
}

}  // namespace chiliad::comm
