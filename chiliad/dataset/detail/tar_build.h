#pragma once

#include <filesystem>

#include "chiliad/dataset/build_tars.h"
#include "chiliad/dataset/detail/build_source.h"

namespace chiliad::dataset::detail {

/// Throws InvalidInput for options out of range, or a condition that is none.
void check_tar_options(const TarOptions& options);

/// `build_tars` of any source; options were checked.
TarReport build_tars_of(BuildSource& source, const std::filesystem::path& out, const TarOptions& options,
                        const Progress& progress);

}  // namespace chiliad::dataset::detail
