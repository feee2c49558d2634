#pragma once

#include <string>
#include <vector>

#include "chiliad/spec/layer_table.h"
#include "chiliad/spec/options/data.h"
#include "chiliad/spec/options/model.h"
#include "chiliad/spec/work.h"
#include "chiliad/stepplan/pack.h"

namespace chiliad::stepplan {

/// The micro-batches that need most memory of those that these options allow: one of each bucket, with the
/// longest captions; or a full row, of one document or of documents of full length, or of each bucket's
/// pictures.
[[nodiscard]] std::vector<spec::BatchShape> largest_batches(const spec::ModelOptions& model,
                                                            const spec::DataOptions& data);

/// Work model of a layout: predicted seconds of forward + backward of a micro-batch, from the model's layer
/// table.
[[nodiscard]] WorkModel make_work_model(const spec::ModelOptions& model, const spec::Rates& rates);

/// Components of the model that see other amounts of a batch than the rest, and the rest: text_encoder and
/// backbone, or nothing where there is one.
[[nodiscard]] std::vector<std::string> balanced_components(const spec::ModelOptions& model);

/// The work model by these components.
[[nodiscard]] ComponentWork make_component_work(const spec::ModelOptions& model, const spec::Rates& rates);

/// The same of rows of documents in a language model.
[[nodiscard]] RowWork make_row_work(const spec::ModelOptions& model, const spec::Rates& rates);

/// Positions of pictures in packs: one a patch, and one a token of the caption where both are one sequence.
[[nodiscard]] PicturePositions make_picture_positions(const spec::ModelOptions& model);

}  // namespace chiliad::stepplan
