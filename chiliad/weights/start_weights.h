#pragma once

#include "chiliad/spec/options/model.h"
#include "chiliad/weights/weight_source.h"

namespace chiliad::weights {

/// Whether `source` has the parameters of the model, and, where a config.json of a language model lies beside
/// it, whether that says the same as the run file: a wrong rotary base fits every tensor and spoils the
/// model. Returns whether there was a config.json to compare. Throws InvalidInput naming the option or the
/// tensors.
bool check_start_weights(const WeightSource& source, const spec::ModelOptions& options);

}  // namespace chiliad::weights
