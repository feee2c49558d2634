#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "apps/command_line/command_line.h"
#include "chiliad/index/index.h"
#include "chiliad/loader/run_inputs.h"
#include "chiliad/spec/run_file.h"

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
void add_overrides(Verb& verb, RunArguments& arguments);

/// The run file with its overrides; the run directory is filled in (runs/<stem>).
[[nodiscard]] spec::RunFile read_run(const RunArguments& arguments);

/// Whether model.weights, where it is given, fits the model. Returns what was found, for people; empty: none
/// is given. Throws InvalidInput that says what does not fit.
std::string check_weights(const spec::RunFile& file);
/// What the scheduler beside published weights says about the objective, for people; empty: the family has
/// none. Warns where they differ.
std::string compare_objective(const spec::RunFile& file, const std::filesystem::path& from);

/// Throws InvalidInput for items that nothing trains on yet: conversations.
void check_trainable(const spec::RunFile& file);

/// The time, for people.
[[nodiscard]] std::string now_text();

/// Makes the token columns of the index that the run needs and that are missing, with progress on stderr.
void make_token_columns(const spec::RunFile& file, const index::Index& index, const loader::RunInputs& inputs,
                        bool quiet);

/// The run's plan; what a large index needs for it is made, with progress on stderr. Throws InvalidInput
/// naming run.steps where the sources end before.
[[nodiscard]] stepplan::Plan open_plan(const spec::RunFile& file, const index::Index& index,
                                       const loader::RunInputs& inputs, bool quiet);

}  // namespace chiliad::cli
