#include "chiliad/parallel/mesh.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

#include "chiliad/base/error.h"

namespace chiliad::parallel {
namespace {

/// Asks for the groups of one rank, named after what they are for and who is in them.
class GroupMaker {
 public:
  GroupMaker(comm::Meeting& meeting, const MeshShape& shape, const MeshPlace& place)
      : meeting_(meeting), shape_(shape), place_(place) {}

  /// Ranks that differ from this one in one coordinate alone.
  std::unique_ptr<comm::Group> along(int MeshPlace::*coordinate, int count, const char* use,
                                     const GroupBytes& bytes) {
    MeshPlace peer = place_;
    std::vector<int> members;
    for (int i = 0; i < count; ++i) {
      peer.*coordinate = i;
      members.push_back(peer.rank(shape_));
    }
    return make(std::move(members), use, bytes);
  }
  std::unique_ptr<comm::Group> world(const char* use, const GroupBytes& bytes) {
    std::vector<int> members;
    for (int rank = 0; rank < shape_.size(); ++rank) members.push_back(rank);
    return make(std::move(members), use, bytes);
  }

 private:
  std::unique_ptr<comm::Group> make(std::vector<int> members, const char* use, const GroupBytes& bytes) {
    const int first = members.front();
    return meeting_.make_group(
        {fmt::format("{}/{}", use, first), std::move(members), bytes.room, bytes.kept});
  }

  comm::Meeting& meeting_;
  const MeshShape& shape_;
  const MeshPlace& place_;
};

}  // namespace

std::string MeshShape::to_string() const {
  return fmt::format("{}dp_replicate {} x dp_shard {} x {}tp {}", pp > 1 ? fmt::format("pp {} x ", pp) : "",
                     dp_replicate, dp_shard, cp > 1 ? fmt::format("cp {} x ", cp) : "", tp);
}

MeshPlace MeshPlace::of(int rank, const MeshShape& shape) {
  MeshPlace place;
  for (const auto& [coordinate, size] : {std::pair(&MeshPlace::tp, shape.tp),
                                         {&MeshPlace::cp, shape.cp},
                                         {&MeshPlace::shard, shape.dp_shard},
                                         {&MeshPlace::replica, shape.dp_replicate},
                                         {&MeshPlace::stage, shape.pp}}) {
    place.*coordinate = rank % size;
    rank /= size;
  }
  return place;
}

int MeshPlace::rank(const MeshShape& shape) const {
  const int data = (stage * shape.dp_replicate + replica) * shape.dp_shard + shard;
  return (data * shape.cp + cp) * shape.tp + tp;
}

Mesh::Mesh(comm::Meeting& meeting, const MeshShape& shape, const MeshBytes& bytes)
    : shape_(shape), place_(MeshPlace::of(meeting.rank(), shape)) {
  CHILIAD_CHECK_EQ(meeting.size(), shape.size());
  GroupMaker maker(meeting, shape_, place_);
  world_ = maker.world("control", bytes.control);
  shard_gather_ = maker.along(&MeshPlace::shard, shape_.dp_shard, "gather", bytes.gather);
  shard_reduce_ = maker.along(&MeshPlace::shard, shape_.dp_shard, "reduce", bytes.reduce);
  replicas_ = maker.along(&MeshPlace::replica, shape_.dp_replicate, "replicas", bytes.replicas);
  tp_ = maker.along(&MeshPlace::tp, shape_.tp, "tp", bytes.tp);
  tp_control_ = maker.along(&MeshPlace::tp, shape_.tp, "tp_control", bytes.tp_control);
  cp_ = maker.along(&MeshPlace::cp, shape_.cp, "cp", bytes.cp);
  pp_ = maker.along(&MeshPlace::stage, shape_.pp, "pp", bytes.pp);
  meeting.finish();
}

layers::TensorParallel Mesh::tensor_parallel() const {
  return {shape_.tp > 1 ? tp_.get() : nullptr};
}

std::array<std::pair<const char*, comm::Group*>, Mesh::kNumGroups> Mesh::groups() const {
  return {{{"control", world_.get()},
           {"gather", shard_gather_.get()},
           {"reduce", shard_reduce_.get()},
           {"replicas", replicas_.get()},
           {"tp", tp_.get()},
           {"tp_control", tp_control_.get()},
           {"cp", cp_.get()},
           {"pp", pp_.get()}}};
}

std::vector<GroupTraffic> Mesh::traffic() const {
  std::vector<GroupTraffic> lines;
  for (const auto& [name, group] : groups()) {
    if (group->size() > 1) lines.push_back({name, group->tier(), group->traffic()});
  }
  return lines;
}

int64_t Mesh::shared_bytes() const {
  int64_t sum = 0;
  for (const auto& [name, group] : groups()) sum += group->shared_bytes();
  return sum;
}

void Mesh::close() {
  auto all = groups();
  std::reverse(all.begin(), all.end());
  for (const auto& [name, group] : all) group->close();
}

std::unique_ptr<Mesh> make_solo_mesh() {
  return std::make_unique<Mesh>(*comm::meet({}), MeshShape{}, MeshBytes{});
}

}  // namespace chiliad::parallel
