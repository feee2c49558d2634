#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "chiliad/spec/options/objective.h"

namespace chiliad::weights {

/// A scheduler_config.json of diffusers for networks that this objective trains: DDPMScheduler, or
/// FlowMatchEulerDiscreteScheduler. Nothing where diffusers has no words for it: a sample predicted by flow
/// matching, a loss of an extension, an autoencoder's.
[[nodiscard]] std::optional<std::string> write_scheduler_config(const spec::ObjectiveOptions& objective,
                                                                bool learned_variance);

/// scheduler_config.json of the pipeline that `transformer` is a folder of, or in that folder; empty: none.
[[nodiscard]] std::filesystem::path find_scheduler_config(const std::filesystem::path& transformer);

/// Where an objective is not the one that the weights beside this file were trained with, as far as the file
/// says: "objective.shift is 1, there 3". Empty too for schedulers that are not known. Throws InvalidInput
/// for what is no JSON object.
[[nodiscard]] std::vector<std::string> scheduler_differences(const std::filesystem::path& path,
                                                             const spec::ObjectiveOptions& objective);

}  // namespace chiliad::weights
