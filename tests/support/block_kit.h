#pragma once

#include <string>
#include <vector>

#include "chiliad/base/rng.h"
#include "chiliad/store/block.h"

namespace chiliad::test {

/// An object of random bytes, cut into blocks of two checked parts each.
struct BlockKit {
  explicit BlockKit(int num_blocks, int64_t block_bytes = 1000, const std::string& store = "test://store")
      : object("shards/a b.tar") {
    Rng rng(uint64_t{11});
    bytes.resize(static_cast<size_t>(num_blocks * block_bytes));
    for (char& c : bytes) c = static_cast<char>(rng.below(256));
    for (int b = 0; b < num_blocks; ++b) {
      store::BlockSpec spec{store, object, b * block_bytes, block_bytes};
      const int64_t half = block_bytes / 2;
      for (const int64_t at : {spec.offset, spec.offset + half}) {
        const auto part = std::string_view(bytes).substr(static_cast<size_t>(at), static_cast<size_t>(half));
        spec.parts.push_back({at, half, hash64(part)});
      }
      blocks.push_back(std::move(spec));
    }
  }
  [[nodiscard]] std::string text_of(size_t block) const {
    return bytes.substr(static_cast<size_t>(blocks[block].offset), static_cast<size_t>(blocks[block].length));
  }

  std::string object;
  std::string bytes;
  std::vector<store::BlockSpec> blocks;
};

}  // namespace chiliad::test
