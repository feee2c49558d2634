#pragma once

#include <filesystem>

namespace chiliad::cli {

/// The folder of checkpoints that a user means: a run directory's `checkpoints`, or the folder itself. Throws
/// InvalidInput if there is no such folder.
[[nodiscard]] std::filesystem::path checkpoint_folder(const std::filesystem::path& given);

}  // namespace chiliad::cli
