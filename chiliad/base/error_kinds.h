#pragma once

#include <exception>
#include <string_view>

#include "chiliad/base/error.h"

namespace chiliad {

/// The kind of any exception; what is not ours counts as internal.
[[nodiscard]] ErrorKind kind_of(const std::exception& error);

/// Exit code of a program that ends with this kind (docs/exit-codes.md).
[[nodiscard]] int exit_code(ErrorKind kind);

/// "invalid_input", "unavailable", "corrupt_data", "peer_lost", "internal": how a kind crosses a process.
[[nodiscard]] const char* kind_name(ErrorKind kind);

/// Unknown names count as internal.
[[nodiscard]] ErrorKind kind_from_name(std::string_view name);

}  // namespace chiliad
