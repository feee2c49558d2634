#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "chiliad/base/rng.h"
#include "chiliad/index/index.h"
#include "chiliad/stepplan/pack.h"
#include "chiliad/stepplan/plan.h"

namespace chiliad::test {

/// An index of documents without files behind it: lengths (in tokens, as document_tokens gives them) from 2
/// to about `longest`, most of them short.
inline index::Index document_index(int64_t count, uint32_t longest, uint64_t seed = 1) {
  Rng rng({seed, 0x646F6373ULL});
  index::Shard shard;
  shard.content = {3, seed};
  for (int64_t i = 0; i < count; ++i) {
    const auto local = static_cast<uint32_t>(i);
    const double u = static_cast<double>(rng.uniform());
    if (i % 50 == 0) shard.blocks.push_back({local, 0, 0});
    ++shard.blocks.back().num_samples;
    index::Sample sample;
    sample.key_hash = mix64(static_cast<uint64_t>(i) + seed);
    sample.first_part = local;
    sample.num_parts = 1;
    sample.first_caption = local;
    sample.num_captions = 1;
    shard.samples.push_back(sample);
    index::Part part;
    part.media = index::MediaType::kJsonLine;
    shard.parts.push_back(part);
    const auto length = static_cast<uint32_t>(2.0 + u * u * u * static_cast<double>(longest));
    shard.captions.push_back({local, 0, length, 0});
    shard.keys.push_back("document" + std::to_string(i));
  }
  std::vector<index::Shard> shards;
  shards.push_back(std::move(shard));
  return index::Index::from_shards({}, std::move(shards));
}

inline stepplan::TokenCount document_tokens(const index::Index& index) {
  return
      [&index](uint32_t shard, uint32_t caption) { return index.shards()[shard].captions[caption].length; };
}

/// Seconds of a row: an overhead, a term a token, and one a pair of tokens of the same document.
inline stepplan::RowWork row_work(double overhead = 0.05) {
  return [overhead](int64_t num_tokens, double squares) {
    return num_tokens == 0 ? 0.0 : overhead + static_cast<double>(num_tokens) * 1e-3 + squares * 1e-6;
  };
}

}  // namespace chiliad::test
