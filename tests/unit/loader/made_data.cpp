#include "tests/unit/loader/made_data.h"

#include <fmt/core.h>

#include "chiliad/base/rng.h"
#include "chiliad/image/encode.h"
#include "chiliad/io/file.h"

namespace chiliad::test {
namespace {

constexpr int kSizes[][2] = {{40, 40}, {30, 55}, {64, 20}, {33, 31}, {20, 70}};

// Not durable, so quick.
void write_bytes(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  io::File file = io::File::create(path);
  file.write(bytes);
  file.close();
}

int width_of(int i) {
  return kSizes[i % 5][0];
}
int height_of(int i) {
  return kSizes[i % 5][1];
}

uint32_t add_file(index::Shard& shard, const std::filesystem::path& root, const std::string& name,
                  std::span<const std::byte> bytes, index::MediaType media) {
  write_bytes(root / name, bytes);
  const io::FileStamp stamp = *io::stat_file(root / name);
  index::Part part;
  part.file = static_cast<uint32_t>(shard.files.size());
  part.length = bytes.size();
  part.checksum = hash64(bytes);
  part.media = media;
  shard.files.push_back({name, stamp.size, stamp.mtime_ns});
  shard.parts.push_back(part);
  return static_cast<uint32_t>(shard.parts.size() - 1);
}

void add_sample(index::Shard& shard, const std::filesystem::path& root, int i) {
  index::Sample sample;
  sample.key_hash = mix64(static_cast<uint64_t>(i));
  sample.num_parts = 2;
  sample.num_captions = 1;
  sample.flags = index::kHasImage;
  const auto png = image::encode_png(MadeData::picture(i));
  sample.first_part = add_file(shard, root, fmt::format("{}.png", i), png, index::MediaType::kImage);
  shard.parts.back().width = static_cast<uint32_t>(width_of(i));
  shard.parts.back().height = static_cast<uint32_t>(height_of(i));
  const std::string text = "# " + MadeData::caption(i) + "\n";
  const uint32_t part = add_file(shard, root, fmt::format("{}.txt", i), std::as_bytes(std::span(text)),
                                 index::MediaType::kText);
  sample.first_caption = static_cast<uint32_t>(shard.captions.size());
  shard.captions.push_back(
      {part, 2, static_cast<uint32_t>(MadeData::caption(i).size()), index::language_code("en")});
  if (shard.samples.size() % 8 == 0)
    shard.blocks.push_back({static_cast<uint32_t>(shard.samples.size()), 0, 0});
  ++shard.blocks.back().num_samples;
  shard.samples.push_back(sample);
  shard.keys.push_back(std::to_string(i));
}

}  // namespace

MadeData::MadeData(int count) {
  std::vector<index::Shard> shards;
  for (int i = 0; i < count; ++i) {
    if (i % 25 == 0) shards.emplace_back().content = {2, static_cast<uint64_t>(i)};
    add_sample(shards.back(), folder_.path(), i);
  }
  index::Manifest manifest;
  manifest.root = folder_.path().string();
  index_ = index::Index::from_shards(manifest, std::move(shards));
}

std::filesystem::path MadeData::picture_path(int i) const {
  return folder_.path() / fmt::format("{}.png", i);
}
std::filesystem::path MadeData::caption_path(int i) const {
  return folder_.path() / fmt::format("{}.txt", i);
}

HostArray MadeData::picture(int i) {
  HostArray picture(DType::kU8, {height_of(i), width_of(i), 3});
  Rng rng({static_cast<uint64_t>(i), 77});
  for (std::byte& byte : picture.bytes()) byte = static_cast<std::byte>(128 + rng.below(128));  // never 0
  return picture;
}

std::string MadeData::caption(int i) {
  return fmt::format("picture {} of {}", i, std::string(static_cast<size_t>(i % 7), 'x'));
}

void MadeData::replace_picture(int i, const std::string& bytes, bool indexed) {
  write_bytes(picture_path(i), std::as_bytes(std::span(bytes)));
  if (!indexed) return;
  auto shards = index_.shards();
  index::Shard& shard = shards[static_cast<size_t>(i / 25)];
  index::Part& part = shard.parts[shard.samples[static_cast<size_t>(i % 25)].first_part];
  part.length = bytes.size();
  part.checksum = hash64(bytes);
  index_ = index::Index::from_shards(index_.manifest(), std::move(shards));
}

Digest content_of(const loader::RankStep& step) {
  Hasher hasher;
  hasher.add(step.step).add(step.epoch).add(step.num_items).add(step.digest).add(step.predicted_work);
  for (const loader::Batch& batch : step.slots) {
    hasher.add(batch.bucket.width).add(batch.bucket.height).add(static_cast<int64_t>(batch.items.size()));
    for (const stepplan::Item& item : batch.items) {
      hasher.add(item.sample).add(static_cast<uint64_t>(item.position)).add(static_cast<double>(item.weight));
    }
    hasher.add(batch.pixels.shape().to_string()).add_bytes(batch.pixels.bytes());
    hasher.add(batch.tokens.shape().to_string()).add_bytes(batch.tokens.bytes());
    for (const int32_t count : batch.token_counts) hasher.add(count);
  }
  for (const loader::Verdict& verdict : step.verdicts) hasher.add(verdict.sample).add(verdict.reason);
  return hasher.digest();
}

}  // namespace chiliad::test
