#pragma once

#include "chiliad/parallel/mesh.h"
#include "chiliad/spec/run_file.h"

namespace chiliad::train {

/// The room that the groups of a run need so that no call waits for it.
[[nodiscard]] parallel::MeshBytes mesh_bytes(const spec::RunFile& run);

}  // namespace chiliad::train
