#include <fmt/core.h>

#include "chiliad/base/error.h"
#include "chiliad/index/content.h"
#include "chiliad/index/detail/check_shard.h"

namespace chiliad::index::detail {
namespace {

class ShardCheck {
 public:
  ShardCheck(const Shard& shard, const std::string& place) : shard_(shard), place_(place) {}

  void samples() const {
    uint64_t next_part = 0;
    uint64_t next_caption = 0;
    for (size_t i = 0; i < shard_.samples.size(); ++i) {
      const Sample& sample = shard_.samples[i];
      require(sample.first_part == next_part, "samples.first_part", i, sample.first_part, next_part);
      require(sample.first_caption == next_caption, "samples.first_caption", i, sample.first_caption,
              next_caption);
      require(sample.key_hash == hash64(shard_.keys[i]), "samples.key_hash", i, sample.key_hash,
              hash64(shard_.keys[i]));
      next_part += sample.num_parts;
      next_caption += sample.num_captions;
      require(next_part <= shard_.parts.size(), "samples.num_parts", i, next_part, shard_.parts.size());
      require(next_caption <= shard_.captions.size(), "samples.num_captions", i, next_caption,
              shard_.captions.size());
      captions_of(sample);
    }
    require(next_part == shard_.parts.size(), "samples.num_parts", shard_.samples.size(), next_part,
            shard_.parts.size());
    require(next_caption == shard_.captions.size(), "samples.num_captions", shard_.samples.size(),
            next_caption, shard_.captions.size());
  }

  void parts() const {
    for (size_t i = 0; i < shard_.parts.size(); ++i) {
      const Part& part = shard_.parts[i];
      require(part.file < shard_.files.size(), "parts.file", i, part.file, shard_.files.size());
      const auto size = static_cast<uint64_t>(shard_.files[part.file].size);
      require(part.length <= size && part.offset <= size - part.length, "parts.offset", i, part.offset, size);
      require(part.media <= MediaType::kCsv, "parts.media", i, static_cast<uint64_t>(part.media),
              static_cast<uint64_t>(MediaType::kCsv));
    }
  }

  void files() const {
    for (size_t i = 0; i < shard_.files.size(); ++i) {
      require(shard_.files[i].size >= 0, "files.size", i, static_cast<uint64_t>(shard_.files[i].size), 0);
    }
  }

  void blocks() const {
    uint64_t next = 0;
    for (size_t i = 0; i < shard_.blocks.size(); ++i) {
      const Block& block = shard_.blocks[i];
      require(block.first_sample == next, "blocks.first_sample", i, block.first_sample, next);
      const uint64_t end = next + block.num_samples;
      require(block.num_samples > 0 && end <= shard_.samples.size(), "blocks.num_samples", i,
              block.num_samples, shard_.samples.size() - next);
      uint64_t payload = 0;
      for (; next < end; ++next) payload += payload_bytes(shard_, shard_.samples[next]);
      require(block.payload_bytes == payload, "blocks.payload_bytes", i, block.payload_bytes, payload);
    }
    require(next == shard_.samples.size(), "blocks.num_samples", shard_.blocks.size(), next,
            shard_.samples.size());
  }

  void content() const {
    const Digest expected = content_digest(shard_);
    if (shard_.content == expected) return;
    throw CorruptData(place_,
                      fmt::format("header: content digest {}, expected {} from the columns. Index again",
                                  shard_.content.hex(), expected.hex()));
  }

 private:
  void captions_of(const Sample& sample) const {
    for (uint32_t c = 0; c < sample.num_captions; ++c) {
      const size_t i = sample.first_caption + c;
      const Caption& caption = shard_.captions[i];
      const bool own =
          caption.part >= sample.first_part && caption.part - sample.first_part < sample.num_parts;
      require(own, "captions.part", i, caption.part, sample.first_part);
      const uint64_t end = uint64_t{caption.offset} + caption.length;
      const uint64_t length = shard_.parts[caption.part].length;
      require(end <= length, "captions.length", i, end, length);
    }
  }

  void require(bool holds, const char* column, size_t row, uint64_t got, uint64_t bound) const {
    if (holds) return;
    throw CorruptData(
        place_, fmt::format("{}: row {} is {}, which does not fit {}. Index again", column, row, got, bound));
  }

  const Shard& shard_;
  const std::string& place_;
};

}  // namespace

void check_shard(const Shard& shard, const std::string& place) {
  const ShardCheck check(shard, place);
  check.files();
  check.parts();
  check.samples();
  check.blocks();
  check.content();
}

}  // namespace chiliad::index::detail
