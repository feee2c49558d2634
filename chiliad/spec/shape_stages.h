#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chiliad/spec/options/data.h"

namespace chiliad::spec {

/// Section data as it is in each of its stages: the first holds from step 0 on, the others from the steps of
/// data.stages on. One where there are none. They have no stages themselves.
[[nodiscard]] std::vector<DataOptions> stage_options(const DataOptions& data);

/// Section data as it is in the last stage: the shapes that a model is evaluated and used with.
[[nodiscard]] DataOptions last_stage(const DataOptions& data);

/// Which of the stages holds a step.
[[nodiscard]] size_t stage_of(const DataOptions& data, int64_t step);

/// What a stage's shapes are, for people: "auto of about 512 x 512 pixels".
[[nodiscard]] std::string shapes_in_words(const DataOptions& stage);

}  // namespace chiliad::spec
