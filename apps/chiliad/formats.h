#pragma once

#include "chiliad/spec/run_file.h"

namespace chiliad::cli {

/// Puts what is measured, or was when the run began, in place of `auto` in section precision. The run
/// directory keeps the measurement (formats.json) and is there already. starts: a new run; else run.yaml of
/// the run directory says what it took, so that a resume computes as before. Throws Unavailable where the
/// measurement fails or takes longer than two minutes.
void settle_formats(spec::RunFile& file, bool starts);

/// For predictions before anything is measured: fp32, the format that needs more.
void assume_formats(spec::RunFile& file);

}  // namespace chiliad::cli
