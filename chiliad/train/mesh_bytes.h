#pragma once

#include "chiliad/parallel/mesh.h"
#include "chiliad/spec/run_file.h"

namespace chiliad::train {

/// What a rank of this run has in flight at most, by kind of traffic. Shared memory that is not used costs
/// nothing.
[[nodiscard]] parallel::MeshBytes mesh_bytes(const spec::RunFile& run);

}  // namespace chiliad::train
