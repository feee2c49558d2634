#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "chiliad/index/index.h"
#include "chiliad/spec/run_file.h"
#include "chiliad/stepplan/pack.h"
#include "chiliad/stepplan/plan.h"
#include "chiliad/text/document_encoder.h"

namespace chiliad::cli {

/// Arguments that every verb over a run file has.
struct RunArguments {
  std::string run_file;
  std::vector<std::string> overrides;  ///< section.key=value
  int64_t nproc = 0;                   ///< 0: as in the run file
  bool quiet = false;
  bool json = false;
};

/// The option --set of a verb over a run file.
void add_overrides(CLI::App& verb, RunArguments& arguments);

/// The run file with its overrides; the run directory is filled in (runs/<stem>).
[[nodiscard]] spec::RunFile read_run(const RunArguments& arguments);

/// The encoder of the run's documents; null in data.mode bucket. Throws InvalidInput if the model has fewer
/// ids.
[[nodiscard]] std::shared_ptr<const text::DocumentEncoder> open_encoder(const spec::RunFile& file);

/// Whether model.weights, where it is given, fits the model. Returns what was found, for people; empty: none
/// is given. Throws InvalidInput that says what does not fit.
std::string check_weights(const spec::RunFile& file);

/// Opens the run's index and makes the token columns that are missing, with progress on stderr.
[[nodiscard]] index::Index open_index(const spec::RunFile& file, const text::DocumentEncoder* encoder,
                                      bool quiet);

/// The run's plan, with the token counts of the index's columns; `index` outlives it.
[[nodiscard]] stepplan::Plan open_plan(const spec::RunFile& file, const index::Index& index,
                                       const text::DocumentEncoder* encoder);

/// The time, for people.
[[nodiscard]] std::string now_text();

/// How the run's layout cuts a step, as the workers cut it.
[[nodiscard]] stepplan::PackOptions pack_options(const spec::RunFile& file,
                                                 const text::DocumentEncoder* encoder, int num_ranks);

}  // namespace chiliad::cli
