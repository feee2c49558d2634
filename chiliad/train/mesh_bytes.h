#pragma once

#include "chiliad/parallel/mesh.h"
#include "chiliad/spec/run_file.h"

namespace chiliad::train {

/// The memory that the groups of a run need on a mesh of that shape: nothing is copied that peers can read in
/// place, and no call waits for room.
[[nodiscard]] parallel::MeshBytes mesh_bytes(const spec::RunFile& run, const parallel::MeshShape& shape);

}  // namespace chiliad::train
