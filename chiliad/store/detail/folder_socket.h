#pragma once

#include <filesystem>
#include <optional>

#include "chiliad/base/unique_fd.h"

namespace chiliad::store::detail {

/// A listening Unix socket FOLDER/owner.sock, in place of one that an earlier owner left; the folder's path
/// may be of any length. Only this user can connect. Throws Unavailable.
[[nodiscard]] UniqueFd listen_in(const std::filesystem::path& folder);
/// Nothing where nobody listens.
[[nodiscard]] std::optional<UniqueFd> connect_in(const std::filesystem::path& folder);

}  // namespace chiliad::store::detail
