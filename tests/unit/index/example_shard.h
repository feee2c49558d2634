#pragma once

#include "chiliad/index/content.h"
#include "chiliad/index/index.h"

namespace chiliad::index {

/// Two files, three samples (one without caption), two blocks; every column holds something.
inline Shard example_shard() {
  Shard shard;
  shard.files = {{"a/\xE9.png", 300, 1'700'000'000'123'456'789},
                 {"a/\xE9.txt", 40, 1'700'000'000'000'000'000}};
  shard.keys = {"a/\xE9", "b", "c"};
  shard.parts = {{0, 0, 100, 11, MediaType::kImage, 6, 0x104, 32, 48},
                 {1, 0, 40, 12, MediaType::kTuxpaintText, 1, 0, 0, 0},
                 {0, 100, 100, 13, MediaType::kImage, 1, 0, 7, 9},
                 {0, 200, 100, 14, MediaType::kImage, 1, 1, 1, 1}};
  shard.captions = {{1, 0, 12, language_code("en")}, {1, 20, 20, language_code("zh")}};
  shard.samples = {{hash64(shard.keys[0]), 0, 2, 0, 0, 2, kHasImage},
                   {hash64(shard.keys[1]), 2, 1, 0, 2, 0, kHasImage | kNoCaption},
                   {hash64(shard.keys[2]), 3, 1, 0, 2, 0, kHasImage | kBadImage | kNoCaption}};
  shard.blocks = {{0, 2, 240}, {2, 1, 100}};
  shard.content = content_digest(shard);
  return shard;
}

/// The same with captions that must be unescaped: JSON, a row of CSV, a conversation.
inline Shard stored_captions_shard() {
  Shard shard = example_shard();
  shard.files.push_back({"rows.csv", 60, 1'700'000'000'000'000'001});
  shard.keys = {"a", "b", "c"};
  shard.parts = {{0, 0, 100, 11, MediaType::kImage, 1, 0, 32, 48},
                 {1, 0, 40, 12, MediaType::kJson, 1, 0, 0, 0},
                 {0, 100, 100, 13, MediaType::kImage, 1, 0, 7, 9},
                 {2, 10, 30, 14, MediaType::kCsv, 1, 0, 0, 0},
                 {1, 0, 40, 15, MediaType::kConversation, 1, 0, 0, 0}};
  shard.captions = {{1, 8, 12, 0}, {1, 24, 3, 0}, {3, 5, 9, 0}, {4, 0, 40, 0}};
  shard.samples = {{hash64(shard.keys[0]), 0, 2, 0, 0, 2, kHasImage},
                   {hash64(shard.keys[1]), 2, 2, 0, 2, 1, kHasImage},
                   {hash64(shard.keys[2]), 4, 1, 0, 3, 1, 0}};
  shard.blocks = {{0, 3, 310}};
  shard.content = content_digest(shard);
  return shard;
}

}  // namespace chiliad::index
