#pragma once

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "chiliad/comm/meeting.h"
#include "chiliad/layers/tensor_parallel.h"

namespace chiliad::parallel {

/// Sizes of a layout's dimensions. The groups of cp and pp are made; nothing runs on them yet (spec refuses
/// other sizes than 1).
struct MeshShape {
  int dp_replicate = 1;  ///< replicas of the sharded parameters
  int dp_shard = 1;      ///< ranks that share the parameters of a replica
  int tp = 1;            ///< ranks that share each layer (tensor and sequence parallelism)
  int cp = 1;            ///< ranks that share each sequence (context parallelism)
  int pp = 1;            ///< ranks with layers of their own (pipeline parallelism)

  [[nodiscard]] int size() const { return pp * dp_replicate * dp_shard * cp * tp; }
  [[nodiscard]] int dp() const { return dp_replicate * dp_shard; }
  /// "dp_replicate 2 x dp_shard 2 x tp 1"; pp and cp where they are not 1.
  [[nodiscard]] std::string to_string() const;
};

/// Where a rank is. Ranks are numbered with tp fastest (it exchanges most: neighbours share a node), then cp,
/// dp_shard, dp_replicate, and pp (which exchanges least) slowest.
struct MeshPlace {
  int replica = 0;
  int shard = 0;
  int tp = 0;
  int cp = 0;
  int stage = 0;
  [[nodiscard]] static MeshPlace of(int rank, const MeshShape& shape);
  [[nodiscard]] int rank(const MeshShape& shape) const;
};

/// Shared memory of a rank in one group.
struct GroupBytes {
  int64_t room = 8 << 20;  ///< for copies of what it has in flight: a call that finds no room waits for its
                           ///< peers to read, and must fit by itself
  int64_t kept = 0;        ///< for what peers read in place (comm::Group::share)
};

/// The same by kind of traffic. It is taken when the groups are made.
struct MeshBytes {
  GroupBytes control{1 << 20};  ///< agreements, verdicts
  GroupBytes gather;            ///< this rank's shards of all layers
  GroupBytes reduce;            ///< gradients of whole layers
  GroupBytes replicas;          ///< shards and their gradients
  GroupBytes tp;                ///< activations
  GroupBytes tp_control;        ///< gradients of parameters that tensor-parallel ranks have copies of
  GroupBytes cp;                ///< parts of sequences
  GroupBytes pp;                ///< activations at the borders of stages
};

struct GroupTraffic {
  const char* name;  ///< kind of traffic: "gather"
  comm::Tier tier;
  comm::Traffic traffic;
};

/// This rank's place and the groups of its dimensions. Kinds of traffic have groups of their own, so that a
/// gather does not wait behind a reduction. A dimension of size 1 has the solo group.
class Mesh {
 public:
  /// Makes all groups and finishes the meeting. Throws PeerLost after its deadline.
  Mesh(comm::Meeting& meeting, const MeshShape& shape, const MeshBytes& bytes);

  [[nodiscard]] const MeshShape& shape() const { return shape_; }
  [[nodiscard]] const MeshPlace& place() const { return place_; }
  [[nodiscard]] int rank() const { return place_.rank(shape_); }
  /// Which share of a step's items this rank has; the same for its peers along tp, cp and pp.
  [[nodiscard]] int dp_index() const { return place_.replica * shape_.dp_shard + place_.shard; }

  [[nodiscard]] comm::Group& world() { return *world_; }  ///< control: all ranks of the job
  [[nodiscard]] comm::Group& shard_gather() { return *shard_gather_; }
  [[nodiscard]] comm::Group& shard_reduce() { return *shard_reduce_; }
  [[nodiscard]] comm::Group& replicas() { return *replicas_; }
  [[nodiscard]] comm::Group& tp_control() { return *tp_control_; }
  [[nodiscard]] layers::TensorParallel tensor_parallel() const;
  [[nodiscard]] comm::Group& context() { return *cp_; }
  [[nodiscard]] comm::Group& stages() { return *pp_; }

  /// By group, those of one rank left out.
  [[nodiscard]] std::vector<GroupTraffic> traffic() const;
  /// Bytes of tensors in memory that peers read in place; the allocator of tensors does not know of them.
  [[nodiscard]] int64_t shared_bytes() const;
  /// Leaves all groups, in the same order on every rank.
  void close();

 private:
  static constexpr size_t kNumGroups = 8;
  /// In the order in which they were made, with the kind of their traffic.
  [[nodiscard]] std::array<std::pair<const char*, comm::Group*>, kNumGroups> groups() const;

  MeshShape shape_;
  MeshPlace place_;
  std::unique_ptr<comm::Group> world_;
  std::unique_ptr<comm::Group> shard_gather_;
  std::unique_ptr<comm::Group> shard_reduce_;
  std::unique_ptr<comm::Group> replicas_;
  std::unique_ptr<comm::Group> tp_;
  std::unique_ptr<comm::Group> tp_control_;
  std::unique_ptr<comm::Group> cp_;
  std::unique_ptr<comm::Group> pp_;
};

/// The mesh of one rank.
[[nodiscard]] std::unique_ptr<Mesh> make_solo_mesh();

}  // namespace chiliad::parallel
