// Stands for nccl_group.cpp in builds without CUDA.
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "chiliad/base/error.h"
#include "chiliad/comm/nccl/nccl_group.h"

namespace chiliad::comm {

int num_gpus() {
  return 0;
}

std::unique_ptr<Group> make_nccl_group(c10::intrusive_ptr<c10d::Store>, Membership membership,
                                       const NcclOptions&) {
  throw InvalidInput(fmt::format("group {}", membership.name),
                     "this build has no NCCL. Build the cuda preset, or train on CPUs");
}

}  // namespace chiliad::comm
