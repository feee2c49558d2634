#pragma once

#include <cstdint>
#include <functional>

#include "chiliad/features/identity.h"
#include "chiliad/index/index.h"
#include "chiliad/spec/run_file.h"

namespace chiliad::encode {

/// Which of a column's parts a process makes: those whose number leaves `rank` when divided by `size`.
struct Share {
  int rank = 0;
  int size = 1;
};

/// Makes the missing parts of a share, one after another; the next one's pictures are read meanwhile. A
/// part's bytes depend on data, run file and machine, not on shares or on what was there before.
/// `before_write` is told of each before it becomes visible (tests). Throws as the readers do.
void encode_parts(const spec::RunFile& run, const index::Index& index, features::Kind kind, Share share,
                  const std::function<void(int64_t)>& before_write = {});

}  // namespace chiliad::encode
