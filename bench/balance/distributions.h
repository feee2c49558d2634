#pragma once

#include <cstdint>
#include <vector>

#include "chiliad/stepplan/item.h"
#include "tests/support/synthetic_index.h"

namespace chiliad::bench {

/// Photographs: seven of ten have one of the ratios 1:1, 4:3, 3:2, 16:9 either way, the others 2^[-1.2, 1.2];
/// their longer side has 384 to 1600 pixels; captions of 5 to 120 words.
std::vector<test::PictureSize> draw_photos(int64_t count, uint64_t seed);

/// A sample of a language model that sees pictures, as the planner needs it.
struct Document {
  uint32_t num_tokens = 0;
  uint32_t image_tokens = 0;
  uint32_t num_tiles = 0;
};

/// Of a hundred: 55 photographs (1.3 tokens a word; 576 tokens a tile: one, and as many as it has squares of
/// 336 pixels, up to 4), 20 small pictures of one tile, 15 of two to four of these, 10 of text alone
/// (log-normal, median 400). Cut to `most` tokens, never inside of a picture.
std::vector<Document> draw_documents(int64_t count, uint64_t seed, int64_t most);

}  // namespace chiliad::bench
