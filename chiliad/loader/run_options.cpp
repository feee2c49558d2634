#include "chiliad/loader/run_options.h"

#include <utility>

#include "chiliad/image/color.h"
#include "chiliad/stepplan/work_model.h"

namespace chiliad::loader {

LoaderOptions loader_options(const spec::RunFile& run, std::shared_ptr<const text::DocumentEncoder> documents,
                             const spec::Rates& rates, int rank, int num_ranks) {
  LoaderOptions options;
  options.rank = rank;
  options.pack.num_ranks = num_ranks;
  options.pack.max_items = run.data.micro_batch_items;
  if (documents != nullptr) {
    options.documents = std::move(documents);
    options.sequence_length = run.data.sequence_length;
    options.pack.max_tokens = run.data.micro_batch_tokens;
    options.pack.row_work = stepplan::make_row_work(run.model, rates);
  } else {
    options.pack.work = stepplan::make_work_model(run.model, rates);
  }
  options.num_threads = static_cast<int>(run.data.loader_threads);
  options.prefetch_steps = run.data.prefetch_steps;
  options.prefetch_bytes = run.data.prefetch_bytes;
  options.cache_bytes = run.data.cache_bytes;
  options.max_tokens = run.model.text_max_tokens;
  options.background = image::parse_color(run.data.background);
  return options;
}

}  // namespace chiliad::loader
