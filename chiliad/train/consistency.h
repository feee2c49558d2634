#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "chiliad/base/error.h"
#include "chiliad/base/hash.h"
#include "chiliad/comm/group.h"
#include "chiliad/index/index.h"
#include "chiliad/loader/batch.h"
#include "chiliad/parallel/mesh.h"
#include "chiliad/parallel/sharded_layer.h"
#include "chiliad/spec/run_file.h"

namespace chiliad::train {

/// Ranks have something other than the rest, which all must have alike. Every rank throws the same.
class RankMismatch : public Error {
 public:
  RankMismatch(ErrorKind kind, std::string place, const std::string& message, std::vector<int> ranks)
      : Error(kind, std::move(place), message), ranks_(std::move(ranks)) {}
  /// Those in the minority; where there is none (two that differ), all of them.
  [[nodiscard]] const std::vector<int>& ranks() const { return ranks_; }

 private:
  std::vector<int> ranks_;
};

/// What a rank was started with, and must be as on all others.
struct Identity {
  std::string config;   ///< run file as YAML, as this rank understood it, without what may differ by host
  std::string start;    ///< name of the checkpoint that it resumes from, or "the beginning"
  std::string program;  ///< build id of its program, or digest of its file
  std::string torch;    ///< version and size of its libtorch
};
[[nodiscard]] Identity own_identity(const spec::RunFile& run, const std::string& resume);

/// Compares what ranks were started with, before anything is built of it. Throws RankMismatch (InvalidInput)
/// that names the rank and what differs; of configurations, the keys and their values.
void check_identity(comm::Group& world, const Identity& mine);

/// What a rank did in a step, and must have done as all others.
struct StepClaim {
  int64_t step = 0;
  Digest items;  ///< of the step, as its plan has it
  uint64_t program = 0;
  bool operator==(const StepClaim&) const = default;
};
/// Throws RankMismatch (InternalError) that names the rank and what differs. claims: [rank].
void check_claims(int64_t step, std::span<const StepClaim> claims);

/// Tensor-parallel ranks did not load the same data: finds the item, loads it again, and throws RankMismatch
/// (CorruptData) that names rank, item, key and byte range. consumed: RankStep::consumed, [rank]. again:
/// digest of an item's data (slot, item) as this rank loads it now. Every rank calls it at the same place.
[[noreturn]] void refuse_other_data(const loader::RankStep& step, std::span<const uint64_t> consumed,
                                    const index::Index& index, parallel::Mesh& mesh,
                                    const std::function<uint64_t(size_t, size_t)>& again);

/// Compares parameters that several ranks must have alike: the shards of replicas, and what tensor-parallel
/// ranks have copies of. One exchange of a few numbers; where nobody has copies, none. Every rank calls it at
/// the same place; parameters are at rest. Throws RankMismatch (CorruptData) that names rank, layer and the
/// first tensor that differs.
void check_parameters(std::span<const std::unique_ptr<parallel::ShardedLayer>> shards, parallel::Mesh& mesh,
                      int64_t step);

/// Digest of all parameters, the same in every layout: the sum over tensors of their positional digest times
/// a number made of their name. One exchange.
[[nodiscard]] uint64_t parameters_digest(std::span<const std::unique_ptr<parallel::ShardedLayer>> shards,
                                         parallel::Mesh& mesh);

/// For tests: flips a bit of rank 1's parameters in step 2, if that bug is planted.
void maybe_flip_a_bit(std::span<const std::unique_ptr<parallel::ShardedLayer>> shards,
                      const parallel::Mesh& mesh, int64_t step);
/// The same of a bit of the data that rank 1 loaded for step 2.
void maybe_spoil_data(const parallel::Mesh& mesh, loader::RankStep& step);

}  // namespace chiliad::train
