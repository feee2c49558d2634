#include "apps/chiliad/ckpt_folder.h"

#include "chiliad/base/error.h"

namespace chiliad::cli {

std::filesystem::path checkpoint_folder(const std::filesystem::path& given) {
  namespace fs = std::filesystem;
  if (fs::is_directory(given / "checkpoints")) return given / "checkpoints";
  if (fs::is_directory(given)) return given;
  throw InvalidInput(given.string(),
                     "no such folder. Give a run directory, its checkpoints/, or a checkpoint in it");
}

}  // namespace chiliad::cli
