#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "chiliad/base/rng.h"
#include "chiliad/checkpoint/reader.h"
#include "chiliad/checkpoint/snapshot.h"

namespace chiliad::test {

/// A whole tensor with values, as one device would hold it.
struct WholeTensor {
  std::string section;
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  std::vector<std::byte> data;
};

/// Some tensors of odd shapes and types in three sections, one of them empty, one a scalar. Values follow
/// `seed`.
[[nodiscard]] std::vector<WholeTensor> make_tensors(uint64_t seed);

/// The values of `box` in row-major order, taken element by element (a plain reference).
[[nodiscard]] std::vector<std::byte> cut(const WholeTensor& tensor, const Box& box);

/// The boxes of every rank: random rows for tensors with rows, empty boxes among them; scalars belong to one
/// rank. The data points into `tensors`.
[[nodiscard]] std::vector<std::vector<checkpoint::OwnedBox>> split_rows(
    const std::vector<WholeTensor>& tensors, int num_ranks, Rng& rng);

[[nodiscard]] checkpoint::SnapshotRing::View view_of(int64_t step, int rank, const std::string& state,
                                                     const std::vector<checkpoint::OwnedBox>& boxes);

/// Writes and commits; returns the step's folder.
std::filesystem::path save_checkpoint(const std::filesystem::path& folder, int64_t step,
                                      const std::vector<WholeTensor>& tensors, int num_ranks, uint64_t seed);
/// The state that save_checkpoint stores.
[[nodiscard]] std::string state_of(int64_t step);

/// Empty if the checkpoint holds exactly these tensors, else the first difference.
[[nodiscard]] std::string difference(const checkpoint::Checkpoint& checkpoint,
                                     const std::vector<WholeTensor>& tensors);

}  // namespace chiliad::test
