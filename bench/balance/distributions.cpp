#include "bench/balance/distributions.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "chiliad/base/rng.h"
#include "chiliad/stepplan/image_spans.h"

namespace chiliad::bench {
namespace {

constexpr int64_t kTileTokens = 576;
constexpr double kTileSide = 336.0;
constexpr double kTokensOfAWord = 1.3;

test::PictureSize draw_photo(Rng& rng) {
  constexpr std::array<std::pair<double, double>, 7> kRatios{
      {{1, 1}, {4, 3}, {3, 2}, {16, 9}, {3, 4}, {2, 3}, {9, 16}}};
  double ratio = 0.0;
  if (rng.uniform() < 0.7F) {
    const auto [width, height] = kRatios[rng.below(kRatios.size())];
    ratio = width / height;
  } else {
    ratio = std::exp2(-1.2 + 2.4 * static_cast<double>(rng.uniform()));
  }
  const auto longer = static_cast<double>(384 + rng.below(1600 - 384 + 1));
  const double width = ratio >= 1.0 ? longer : longer * ratio;
  const double height = ratio >= 1.0 ? longer / ratio : longer;
  const auto words = static_cast<uint32_t>(5 + rng.below(116));
  return {static_cast<uint32_t>(std::lround(width)), static_cast<uint32_t>(std::lround(height)), words};
}

uint32_t tiles_of(const test::PictureSize& photo) {
  const auto squares = [](uint32_t side) {
    return static_cast<uint32_t>(std::max(1L, std::lround(side / kTileSide)));
  };
  const uint32_t tiles = squares(photo.width) * squares(photo.height);
  return tiles <= 1 ? 1 : 1 + std::min(4U, tiles);
}

double log_normal(Rng& rng, double median) {
  double sum = 0.0;  // about normal
  for (int i = 0; i < 12; ++i) sum += static_cast<double>(rng.uniform());
  return median * std::exp(0.9 * (sum - 6.0));
}

Document draw_document(Rng& rng, int64_t most) {
  const auto kind = rng.below(100);
  const test::PictureSize photo = draw_photo(rng);
  const auto text = static_cast<int64_t>(kTokensOfAWord * photo.caption_bytes);
  std::vector<uint32_t> tiles;  // of each picture
  int64_t length = text;
  if (kind < 55) {
    tiles.push_back(tiles_of(photo));
  } else if (kind < 75) {
    tiles.push_back(1);
  } else if (kind < 90) {
    tiles.assign(2 + rng.below(3), 1);
  } else {
    length = std::max<int64_t>(2, std::llround(log_normal(rng, 400.0)));
  }
  std::vector<stepplan::ImageSpan> spans;
  for (const uint32_t count : tiles) {
    spans.push_back({length, count * kTileTokens});
    length += count * kTileTokens;
  }
  Document document;
  const int64_t kept = stepplan::cut_outside_spans(length, spans, most);
  document.num_tokens = static_cast<uint32_t>(std::max<int64_t>(1, kept));
  for (size_t i = 0; i < spans.size(); ++i) {
    if (spans[i].first + spans[i].count > kept) continue;
    document.image_tokens += static_cast<uint32_t>(spans[i].count);
    document.num_tiles += tiles[i];
  }
  return document;
}

}  // namespace

std::vector<test::PictureSize> draw_photos(int64_t count, uint64_t seed) {
  Rng rng({seed, 0x70686F746FULL});
  std::vector<test::PictureSize> photos;
  photos.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) photos.push_back(draw_photo(rng));
  return photos;
}

std::vector<Document> draw_documents(int64_t count, uint64_t seed, int64_t most) {
  Rng rng({seed, 0x646F6373ULL});
  std::vector<Document> documents;
  documents.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) documents.push_back(draw_document(rng, most));
  return documents;
}

}  // namespace chiliad::bench
