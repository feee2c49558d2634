#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "chiliad/index/index.h"
#include "chiliad/loader/loader.h"
#include "chiliad/spec/run_file.h"
#include "chiliad/spec/work.h"
#include "chiliad/stepplan/plan.h"
#include "chiliad/store/cache_owner.h"
#include "chiliad/text/document_encoder.h"

namespace chiliad::loader {

/// What a run reads beside its index, by its model: a document encoder (language models), columns of frozen
/// encoders (models on latents), or nothing.
struct RunInputs {
  std::shared_ptr<const text::DocumentEncoder> documents;
  /// Where items are conversations, in place of `documents`.
  std::shared_ptr<const Conversations> conversations;
  FeatureColumns columns;
  /// Of an index with data in stores: its parts, through the owner of the block cache, which is asked first
  /// when the first part is read. Shared with the loaders of the run until the last is gone; null where the
  /// data is in files.
  std::shared_ptr<index::PartSource> source;
};

/// The index that section data names, or those of its sources in a row.
[[nodiscard]] index::Index open_index(const spec::DataOptions& data);

/// Throws InvalidInput where the data is remote and store.folder is not set, where a column is not there or
/// does not fit the model, and naming model.vocabulary where the model has fewer ids than the tokenizer.
[[nodiscard]] RunInputs open_inputs(const spec::RunFile& run, const index::Index& index,
                                    std::function<void()> take_over = {});

/// The same part of it: where the data of `index` comes from. Null: files.
/// `take_over`: as of store::CacheClient.
[[nodiscard]] std::shared_ptr<index::PartSource> open_source(const spec::RunFile& run,
                                                             const index::Index& index,
                                                             std::function<void()> take_over = {});

/// Of the block cache of a run whose data is remote, for so many processes and its owner. Throws InvalidInput
/// where no folder is given.
[[nodiscard]] store::CacheOptions cache_options(const spec::RunFile& run, const index::Index& index,
                                                int64_t num_readers);

/// Profiles of ~/.aws that data.sources name, by the root of the source's index. Throws InvalidInput where a
/// source in files has one, or two sources name others for one root.
[[nodiscard]] std::map<std::string, std::string> store_profiles(const spec::RunFile& run,
                                                                const index::Index& index);

/// What a plan of a large index has done of what it makes beside it.
using PlanProgress = std::function<void(int64_t done, int64_t total)>;

/// The run's plan; `index` outlives it. Token counts are those of the index's token columns, or of the
/// encoded captions. Files of a plan of a large index that are missing are made.
[[nodiscard]] stepplan::Plan open_plan(const spec::RunFile& run, const index::Index& index,
                                       const RunInputs& inputs,
                                       stepplan::PlanPart part = stepplan::PlanPart::kTraining,
                                       const PlanProgress& progress = {});

/// What a run file says of loading and packing, for data-parallel rank `rank` of `num_ranks`: whoever shows a
/// step loads it as training does.
[[nodiscard]] LoaderOptions loader_options(const spec::RunFile& run, const RunInputs& inputs,
                                           const spec::Rates& rates, int rank, int num_ranks);

/// What section data says of pixels.
[[nodiscard]] PictureOptions picture_options(const spec::DataOptions& data);

/// How the run's layout cuts a step.
[[nodiscard]] stepplan::PackOptions pack_options(const spec::RunFile& run, const spec::Rates& rates,
                                                 int num_ranks);

}  // namespace chiliad::loader
