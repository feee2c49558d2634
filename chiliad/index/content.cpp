#include "chiliad/index/content.h"

namespace chiliad::index {

Digest content_digest(const Shard& shard) {
  Hasher hasher;
  hasher.add("chiliad shard content 1").add(static_cast<uint64_t>(shard.samples.size()));
  for (size_t i = 0; i < shard.samples.size(); ++i) {
    const Sample& sample = shard.samples[i];
    hasher.add(std::string_view(shard.keys[i]));
    hasher.add(uint64_t{sample.flags}).add(uint64_t{sample.source});
    hasher.add(uint64_t{sample.num_parts}).add(uint64_t{sample.num_captions});
    for (uint32_t p = 0; p < sample.num_parts; ++p) {
      const Part& part = shard.parts[sample.first_part + p];
      hasher.add(static_cast<uint64_t>(part.media)).add(part.length).add(part.checksum);
    }
    for (uint32_t c = 0; c < sample.num_captions; ++c) {
      const Caption& caption = shard.captions[sample.first_caption + c];
      hasher.add(uint64_t{caption.part} - sample.first_part).add(uint64_t{caption.offset});
      hasher.add(uint64_t{caption.length}).add(uint64_t{caption.language});
    }
  }
  return hasher.digest();
}

Digest manifest_digest(const Manifest& manifest) {
  Hasher hasher;
  hasher.add("chiliad data set 1").add(std::string_view(manifest.layout));
  hasher.add(static_cast<uint64_t>(manifest.shards.size()));
  for (const ShardEntry& shard : manifest.shards) hasher.add(shard.content);
  return hasher.digest();
}

uint64_t payload_bytes(const Shard& shard, const Sample& sample) {
  uint64_t bytes = 0;
  for (uint32_t p = 0; p < sample.num_parts; ++p) bytes += shard.parts[sample.first_part + p].length;
  return bytes;
}

}  // namespace chiliad::index
