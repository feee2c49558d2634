#pragma once

#include <optional>

#include "chiliad/spec/detail/cross_checks.h"

namespace chiliad::spec::detail {

/// An option that nothing in this run reads, and that is not at its default: nobody shall believe that it
/// does something. Names its owner.
[[nodiscard]] std::optional<Conflict> find_foreign_option(const RunFile& file);

}  // namespace chiliad::spec::detail
