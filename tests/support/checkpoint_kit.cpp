#include "tests/support/checkpoint_kit.h"

#include <fmt/core.h>

#include <algorithm>

#include "chiliad/checkpoint/commit.h"

namespace chiliad::test {

using checkpoint::OwnedBox;

std::vector<WholeTensor> make_tensors(uint64_t seed) {
  std::vector<WholeTensor> tensors{
      {"model", "embed.weight", DType::kBF16, {7, 5}, {}},        {"model", "bytes", DType::kU8, {13}, {}},
      {"model", "head.weight", DType::kF32, {3, 4, 2}, {}},       {"model", "empty", DType::kF32, {0, 4}, {}},
      {"optim", "exp_avg.embed.weight", DType::kF32, {7, 5}, {}}, {"optim", "step", DType::kI64, Shape(), {}},
      {"ema", "head.weight", DType::kF64, {3, 4, 2}, {}},
  };
  Rng rng({seed, 77});
  for (WholeTensor& tensor : tensors) {
    tensor.data.resize(static_cast<size_t>(tensor.shape.count() * dtype_bytes(tensor.dtype)));
    for (std::byte& byte : tensor.data) byte = static_cast<std::byte>(rng.next_u32() & 0xFF);
  }
  return tensors;
}

std::vector<std::byte> cut(const WholeTensor& tensor, const Box& box) {
  const auto element = static_cast<size_t>(dtype_bytes(tensor.dtype));
  std::vector<std::byte> out;
  for (int64_t i = 0; i < box.count(); ++i) {
    int64_t rest = i;
    int64_t index = 0;
    int64_t stride = 1;
    for (int axis = tensor.shape.rank() - 1; axis >= 0; --axis) {
      index += (box.offset[axis] + rest % box.size[axis]) * stride;
      rest /= box.size[axis];
      stride *= tensor.shape[axis];
    }
    const std::byte* at = tensor.data.data() + static_cast<size_t>(index) * element;
    out.insert(out.end(), at, at + element);
  }
  return out;
}

std::vector<std::vector<OwnedBox>> split_rows(const std::vector<WholeTensor>& tensors, int num_ranks,
                                              Rng& rng) {
  std::vector<std::vector<OwnedBox>> ranks(static_cast<size_t>(num_ranks));
  for (const WholeTensor& tensor : tensors) {
    if (tensor.shape.rank() == 0) {
      auto& owner = ranks[rng.below(static_cast<uint64_t>(num_ranks))];
      owner.push_back({tensor.section, tensor.name, tensor.dtype, tensor.shape, Box::whole(tensor.shape),
                       tensor.data.data()});
      continue;
    }
    std::vector<int64_t> cuts{0, tensor.shape[0]};
    for (int i = 1; i < num_ranks; ++i) {
      cuts.push_back(static_cast<int64_t>(rng.below(static_cast<uint64_t>(tensor.shape[0]) + 1)));
    }
    std::sort(cuts.begin(), cuts.end());
    const int64_t row_bytes =
        tensor.shape[0] == 0 ? 0 : static_cast<int64_t>(tensor.data.size()) / tensor.shape[0];
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      const Box box = Box::rows(tensor.shape, cuts[rank], cuts[rank + 1] - cuts[rank]);
      ranks[rank].push_back({tensor.section, tensor.name, tensor.dtype, tensor.shape, box,
                             tensor.data.data() + cuts[rank] * row_bytes});
    }
  }
  return ranks;
}

checkpoint::SnapshotRing::View view_of(int64_t step, int rank, const std::string& state,
                                       const std::vector<OwnedBox>& boxes) {
  checkpoint::SnapshotRing::View view{step, rank, state, boxes, {}};
  for (const OwnedBox& box : boxes) {
    view.digests.push_back(checkpoint::positional_digest(box.dtype, box.shape, box.box, box.data));
  }
  return view;
}

std::string state_of(int64_t step) {
  return fmt::format("{{\"cursor\":{}}}", step * 10);
}

std::filesystem::path save_checkpoint(const std::filesystem::path& folder, int64_t step,
                                      const std::vector<WholeTensor>& tensors, int num_ranks, uint64_t seed) {
  Rng rng({seed, 78});
  const auto ranks = split_rows(tensors, num_ranks, rng);
  checkpoint::CheckpointWriter writer(folder, step, num_ranks, "run: {name: test}\n");
  for (int rank = 0; rank < num_ranks; ++rank) {
    writer.write_rank(view_of(step, rank, state_of(step), ranks[static_cast<size_t>(rank)]));
  }
  writer.commit();
  return writer.path();
}

std::string difference(const checkpoint::Checkpoint& checkpoint, const std::vector<WholeTensor>& tensors) {
  if (checkpoint.tensors().size() != tensors.size())
    return fmt::format("{} tensors", checkpoint.tensors().size());
  for (const WholeTensor& tensor : tensors) {
    const auto* stored = checkpoint.find(tensor.section, tensor.name);
    if (stored == nullptr) return tensor.name + " is missing";
    if (stored->dtype != tensor.dtype || stored->shape != tensor.shape)
      return tensor.name + " has another type or shape";
    std::vector<std::byte> data(tensor.data.size());
    checkpoint.read(*stored, Box::whole(tensor.shape), data);
    if (data != tensor.data) return tensor.name + " has other values";
  }
  return "";
}

}  // namespace chiliad::test
