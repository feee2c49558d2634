#pragma once

#include "chiliad/stepplan/pack.h"

namespace chiliad::stepplan {

/// `pack` in mode pack: rows of whole documents of at most options.max_tokens positions.
[[nodiscard]] PackedStep pack_rows(const Step& step, const PackOptions& options);

/// What a document adds to a row, without the row's overhead.
[[nodiscard]] double document_work(const Item& item, const PackOptions& options);

}  // namespace chiliad::stepplan
