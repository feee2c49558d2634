#pragma once

#include "chiliad/spec/options/model.h"
#include "chiliad/spec/work.h"
#include "chiliad/stepplan/pack.h"

namespace chiliad::stepplan {

/// Work model of a layout: predicted seconds of forward + backward of a micro-batch, from the model's layer
/// table.
[[nodiscard]] WorkModel make_work_model(const spec::ModelOptions& model, const spec::Rates& rates);

/// The same of rows of documents in a language model.
[[nodiscard]] RowWork make_row_work(const spec::ModelOptions& model, const spec::Rates& rates);

}  // namespace chiliad::stepplan
