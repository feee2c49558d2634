#include <ATen/ATen.h>

#include <array>
#include <cstring>

#include "chiliad/base/error.h"
#include "chiliad/comm/group.h"
#include "chiliad/comm/part_sum.h"

namespace chiliad::comm {
namespace {

/// An exchange whose parts are summed when they are there.
class SummedWork final : public Work {
 public:
  SummedWork(std::unique_ptr<Work> exchange, at::Tensor received, at::Tensor out, int ranks, bool accumulate,
             std::vector<at::Tensor>& scratch)
      : exchange_(std::move(exchange)),
        received_(std::move(received)),
        out_(std::move(out)),
        ranks_(ranks),
        accumulate_(accumulate),
        scratch_(scratch) {}

  void wait() override {
    exchange_->wait();
    if (out_.is_cpu()) {
      sum_on_host();
    } else {
      sum_on_device();
    }
    scratch_.push_back(std::move(received_));
  }

 private:
  void sum_on_host() {
    const auto bytes = out_.numel() * received_.element_size();
    std::vector<const void*> parts;
    for (int rank = 0; rank < ranks_; ++rank)
      parts.push_back(static_cast<const std::byte*>(received_.const_data_ptr()) + rank * bytes);
    sum_parts(parts, part_type(received_), out_.numel(), out_.mutable_data_ptr<float>(), accumulate_);
  }
  void sum_on_device() {
    for (int rank = 0; rank < ranks_; ++rank) {
      const at::Tensor part = received_.narrow(0, rank * out_.numel(), out_.numel());
      if (rank == 0 && !accumulate_) {
        out_.copy_(part);
      } else {
        out_.add_(part);
      }
    }
  }

  std::unique_ptr<Work> exchange_;
  at::Tensor received_;
  at::Tensor out_;
  int ranks_;
  bool accumulate_;
  std::vector<at::Tensor>& scratch_;  // of the group, which outlives its works
};

/// Memory of an earlier call, or new.
at::Tensor take_scratch(std::vector<at::Tensor>& scratch, int64_t count, const at::TensorOptions& options) {
  for (auto it = scratch.begin(); it != scratch.end(); ++it) {
    if (it->numel() < count || it->dtype() != options.dtype()) continue;
    at::Tensor taken = std::move(*it);
    scratch.erase(it);
    return taken;
  }
  if (!scratch.empty()) scratch.pop_back();  // too small: replaced, so that there are as many as were in use
  return at::empty({count}, options);
}

}  // namespace

const char* tier_name(Tier tier) {
  constexpr std::array<const char*, 3> kNames{"self", "machine", "network"};
  return kNames[static_cast<size_t>(tier)];
}

std::unique_ptr<Work> Group::reduce_scatter(at::Tensor out, at::Tensor in, std::span<const int64_t> counts,
                                            bool accumulate) {
  const int64_t mine = counts[static_cast<size_t>(rank())];
  CHILIAD_CHECK_EQ(out.numel(), mine);
  at::Tensor received = take_scratch(scratch_, mine * size(), in.options());
  const std::vector<int64_t> out_counts(static_cast<size_t>(size()), mine);
  auto exchange = all_to_all(received.narrow(0, 0, mine * size()), out_counts, in, counts);
  return std::make_unique<SummedWork>(std::move(exchange), std::move(received), std::move(out), size(),
                                      accumulate, scratch_);
}

at::Tensor Group::share(int64_t) {
  return {};
}
void Group::await_read(const at::Tensor&) {}

std::vector<double> sum_over_ranks(Group& group, std::span<const double> values) {
  const auto count = static_cast<int64_t>(values.size());
  at::Tensor in = at::empty({count}, at::kDouble);
  std::memcpy(in.mutable_data_ptr(), values.data(), values.size_bytes());
  at::Tensor all = at::empty({count * group.size()}, at::kDouble);
  group.all_gather(all, in)->wait();
  std::vector<double> sums(values.size(), 0.0);
  const auto* data = all.const_data_ptr<double>();
  for (int rank = 0; rank < group.size(); ++rank) {
    for (int64_t i = 0; i < count; ++i) sums[static_cast<size_t>(i)] += data[rank * count + i];
  }
  return sums;
}

std::vector<std::string> gather_texts(Group& group, const std::string& text) {
  std::vector<double> lengths(static_cast<size_t>(group.size()), 0.0);
  lengths[static_cast<size_t>(group.rank())] = static_cast<double>(text.size());
  lengths = sum_over_ranks(group, lengths);
  std::vector<int64_t> counts(lengths.begin(), lengths.end());
  int64_t total = 0;
  int64_t begin = 0;
  for (int r = 0; r < group.size(); ++r) {
    if (r == group.rank()) begin = total;
    total += counts[static_cast<size_t>(r)];
  }
  std::vector<std::string> texts;
  if (total == 0) return std::vector<std::string>(static_cast<size_t>(group.size()));
  at::Tensor flat = at::zeros({total}, at::kByte);
  std::memcpy(flat.mutable_data_ptr<uint8_t>() + begin, text.data(), text.size());
  group.all_gather_parts(flat, counts, flat.narrow(0, begin, counts[static_cast<size_t>(group.rank())]))
      ->wait();
  const auto* data = reinterpret_cast<const char*>(flat.const_data_ptr<uint8_t>());
  for (const int64_t count : counts) {
    texts.emplace_back(data, static_cast<size_t>(count));
    data += count;
  }
  return texts;
}

}  // namespace chiliad::comm
