#include <ATen/ATen.h>
#include <gloo/config.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <cstring>
#include <exception>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/comm/gloo/gloo_group.h"
#include "chiliad/comm/group.h"

namespace chiliad::comm {
namespace {

[[noreturn]] void peer_lost(const char* call, const Membership& membership, int peer,
                            const std::exception& error) {
  std::string text = error.what();
  text = text.substr(0, text.find('\n'));
  const int lost = membership.members[static_cast<size_t>(peer)];
  throw PeerLost(
      fmt::format("rank {}", membership.own()),
      fmt::format("{} of group {} with rank {} failed: {}. It has gone, did not answer in time, or "
                  "makes another call",
                  call, membership.name, lost, text),
      lost);
}

[[noreturn]] void connecting_failed(const Membership& membership, const std::exception& error) {
  const std::string text = error.what();
  throw PeerLost(fmt::format("rank {}", membership.own()),
                 fmt::format("connecting group {} failed: {}. A peer has gone or did not answer in time",
                             membership.name, text.substr(0, text.find('\n'))));
}

/// Sends and receives of one call, one for each peer that has a part in it.
class GlooWork final : public Work {
 public:
  GlooWork(const char* call, const Membership& membership) : call_(call), membership_(membership) {}

  void add(int peer, at::Tensor part, c10::intrusive_ptr<c10d::Work> work) {
    transfers_.push_back({peer, std::move(part), std::move(work)});
  }

  void wait() override {
    for (auto& transfer : transfers_) {
      try {
        transfer.work->wait();
      } catch (const std::exception& error) {
        peer_lost(call_, membership_, transfer.peer, error);
      }
    }
    transfers_.clear();
  }

 private:
  struct Transfer {
    int peer;
    at::Tensor part;  // must outlive the transfer
    c10::intrusive_ptr<c10d::Work> work;
  };

  const char* call_;
  const Membership& membership_;  // of the group, which outlives its works
  std::vector<Transfer> transfers_;
};

/// Where each rank's part of a flat tensor lies.
std::vector<at::Tensor> parts_of(const at::Tensor& flat, std::span<const int64_t> counts) {
  std::vector<at::Tensor> parts;
  int64_t begin = 0;
  for (const int64_t count : counts) {
    parts.push_back(flat.narrow(0, begin, count));
    begin += count;
  }
  return parts;
}

/// Behind autograd's back: it would take a copy for a change of what it keeps.
void copy_bytes(const at::Tensor& from, const at::Tensor& to) {
  if (from.numel() == 0 || from.const_data_ptr() == to.const_data_ptr()) return;
  std::memcpy(to.mutable_data_ptr(), from.const_data_ptr(), from.nbytes());
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
    gloo_options->threads = 1;  // not used: sends and receives are made by the device's own thread
    gloo_options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(options.host));
    group_ = c10::make_intrusive<c10d::ProcessGroupGloo>(
        c10::make_intrusive<c10d::PrefixStore>(membership_.name, store_), rank_, size_, gloo_options);
  }

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }

  std::unique_ptr<Work> all_to_all(at::Tensor out, std::span<const int64_t> out_counts, at::Tensor in,
                                   std::span<const int64_t> in_counts) override {
    return exchange("all-to-all", parts_of(out, out_counts), parts_of(in.contiguous(), in_counts));
  }

  std::unique_ptr<Work> all_gather(at::Tensor out, at::Tensor in) override {
    const std::vector<int64_t> counts(static_cast<size_t>(size_), in.numel());
    return all_gather_parts(out, counts, in);
  }

  std::unique_ptr<Work> all_gather_parts(at::Tensor out, std::span<const int64_t> counts,
                                         at::Tensor in) override {
    const at::Tensor flat = in.contiguous().view({-1});
    CHILIAD_CHECK_EQ(flat.numel(), counts[static_cast<size_t>(rank_)]);
    return exchange("all-gather", parts_of(out.view({-1}), counts),
                    std::vector<at::Tensor>(static_cast<size_t>(size_), flat));
  }

  [[nodiscard]] Traffic traffic() const override { return traffic_; }

  void close() override {
    group_.reset();
    store_.reset();
  }

 private:
  /// Receives out[peer] and sends in[peer], straight from and to the tensors.
  std::unique_ptr<Work> exchange(const char* name, const std::vector<at::Tensor>& out,
                                 const std::vector<at::Tensor>& in) {
    const auto own = static_cast<size_t>(rank_);
    ++traffic_.num_calls;
    auto work = std::make_unique<GlooWork>(name, membership_);
    // Receives first: a peer's message that is awaited needs no other memory.
    for (const bool receives : {true, false}) {
      // Round-robin from the next rank: not all to the same one at once.
      for (int step = 1; step < size_; ++step) {
        const int peer = (rank_ + (receives ? size_ - step : step)) % size_;
        at::Tensor part = (receives ? out : in)[static_cast<size_t>(peer)];
        if (part.numel() == 0) continue;
        if (!receives) traffic_.bytes_sent += static_cast<int64_t>(part.nbytes());
        work->add(peer, part, transfer(name, peer, part, receives));
      }
    }
    copy_bytes(in[own], out[own]);
    return work;
  }

  c10::intrusive_ptr<c10d::Work> transfer(const char* name, int peer, const at::Tensor& part, bool receives) {
    std::vector<at::Tensor> tensors = {part};
    try {
      if (receives) return group_->recv(tensors, peer, tag_of(part));
      return group_->send(tensors, peer, tag_of(part));
    } catch (const std::exception& error) {
      peer_lost(name, membership_, peer, error);
    }
  }

  /// Of the call and its size: parts of different sizes do not meet, and both ranks see the deadline.
  [[nodiscard]] int tag_of(const at::Tensor& part) const {
    const auto call = static_cast<uint64_t>(traffic_.num_calls) & 0xFFFU;
    const auto size = (static_cast<uint64_t>(part.nbytes()) * 0x9E3779B97F4A7C15U) >> 45U;
    return static_cast<int>(call << 19U | size);
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
    connecting_failed(membership, error);
  }
}

}  // namespace chiliad::comm
