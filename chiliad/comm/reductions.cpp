#include <ATen/ATen.h>

#include <cstring>

#include "chiliad/base/error.h"
#include "chiliad/comm/group.h"

namespace chiliad::comm {

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
  group.all_gather_parts(flat, counts)->wait();
  const auto* data = reinterpret_cast<const char*>(flat.const_data_ptr<uint8_t>());
  for (const int64_t count : counts) {
    texts.emplace_back(data, static_cast<size_t>(count));
    data += count;
  }
  return texts;
}

}  // namespace chiliad::comm
