#pragma once

#include <string>

#include "chiliad/spec/extension.h"

namespace chiliad::spec {

/// What extensions bring, and the layers of the run that uses them, as JSON for a process without torch.
/// table: null where the run uses no family of theirs.
[[nodiscard]] std::string extensions_to_json(const Extensions& extensions, const LayerTable* table);

/// Back from it: names, options and, for every family, the layers that were told; no builders and no losses.
/// Throws InternalError for other text.
[[nodiscard]] Extensions extensions_from_json(const std::string& text);

}  // namespace chiliad::spec
