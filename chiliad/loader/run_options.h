#pragma once

#include <memory>

#include "chiliad/loader/loader.h"
#include "chiliad/spec/run_file.h"
#include "chiliad/spec/work.h"
#include "chiliad/text/document_encoder.h"

namespace chiliad::loader {

/// What a run file says of loading and packing, for data-parallel rank `rank` of `num_ranks`: whoever shows
/// a step loads it as training does. documents: null in mode bucket.
[[nodiscard]] LoaderOptions loader_options(const spec::RunFile& run,
                                           std::shared_ptr<const text::DocumentEncoder> documents,
                                           const spec::Rates& rates, int rank, int num_ranks);

}  // namespace chiliad::loader
