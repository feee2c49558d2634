#include "chiliad/dataset/conversation_columns.h"

#include <algorithm>
#include <mutex>
#include <set>
#include <string_view>
#include <vector>

#include "chiliad/base/error.h"
#include "chiliad/base/thread_pool.h"
#include "chiliad/dataset/detail/read_part.h"
#include "chiliad/io/file.h"

namespace chiliad::dataset {
namespace {

using index::MediaType;

struct Columns {
  index::TokenColumn ids, positions, tiles;
};

class ShardCounter {
 public:
  ShardCounter(const index::Index& index, const index::Shard& shard, const text::ConversationEncoder& encoder,
               const image::VisionView& view, index::PartSource* source)
      : index_(index), shard_(shard), encoder_(encoder), view_(view), source_(source) {
    for (auto* column : {&columns_.ids, &columns_.positions, &columns_.tiles})
      column->caption_tokens.resize(shard.captions.size());
  }

  /// Returns the bytes read.
  int64_t count(const index::Sample& sample) {
    int64_t bytes = 0;
    for (uint32_t c = sample.first_caption; c < sample.first_caption + sample.num_captions; ++c) {
      const index::Part& part = shard_.parts[shard_.captions[c].part];
      if (part.media != MediaType::kConversation) {
        throw InvalidInput(index_.folder().string(),
                           "holds no conversations, which vision.template is for. Leave it out, or index "
                           "LLaVA's records (docs/guides/your-own-data.md)");
      }
      if ((sample.flags & index::kBadImage) == 0) count_record(sample, c, part);
      bytes += static_cast<int64_t>(part.length);
    }
    return bytes;
  }

  [[nodiscard]] const Columns& columns() const { return columns_; }

 private:
  void count_record(const index::Sample& sample, uint32_t caption, const index::Part& part) {
    std::vector<image::VisionSize> sizes;
    std::vector<const index::Part*> pictures;
    for (uint32_t p = sample.first_part; p < sample.first_part + sample.num_parts; ++p)
      if (shard_.parts[p].media == MediaType::kImage) pictures.push_back(&shard_.parts[p]);
    std::vector<int64_t> positions;
    for (const index::Part* picture : pictures) {
      sizes.push_back(image::vision_size(view_, static_cast<int32_t>(picture->width),
                                         static_cast<int32_t>(picture->height),
                                         static_cast<int64_t>(pictures.size())));
      positions.push_back(sizes.back().positions);
    }
    const auto bytes = detail::read_part(index_, shard_, part, source_);
    const auto encoded =
        encoder_.encode({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, positions);
    // The first id is no target.
    if (encoded.ids.size() < 2 ||
        std::find(encoded.supervised.begin() + 1, encoded.supervised.end(), 1) == encoded.supervised.end())
      return;
    columns_.ids.caption_tokens[caption] = static_cast<uint32_t>(encoded.ids.size());
    for (size_t p = 0; p < encoded.pictures.size(); ++p) {
      columns_.positions.caption_tokens[caption] += static_cast<uint32_t>(sizes[p].positions);
      columns_.tiles.caption_tokens[caption] += static_cast<uint32_t>(sizes[p].tiles);
    }
  }

  const index::Index& index_;
  const index::Shard& shard_;
  const text::ConversationEncoder& encoder_;
  const image::VisionView& view_;
  index::PartSource* source_;  // null: files
  Columns columns_;            // each sample writes its own places
};

bool is_made(const std::filesystem::path& path, const index::Shard& shard) {
  if (!io::stat_file(path).has_value()) return false;
  try {
    static_cast<void>(index::read_token_column(path, shard.captions.size()));
    return true;
  } catch (const CorruptData&) {
    return false;  // made again
  }
}

int64_t record_bytes(const index::Shard& shard) {
  int64_t bytes = 0;
  for (const index::Caption& caption : shard.captions)
    bytes += static_cast<int64_t>(shard.parts[caption.part].length);
  return bytes;
}

}  // namespace

int64_t build_conversation_columns(const index::Index& index, const text::ConversationEncoder& encoder,
                                   const image::VisionView& view, const Progress& progress,
                                   index::PartSource* source) {
  constexpr int kThreads = 2;
  constexpr size_t kSamplesPerTask = 64;
  const text::ConversationKeys keys = encoder.keys();
  std::vector<std::pair<uint32_t, std::vector<std::filesystem::path>>> missing;
  std::set<std::filesystem::path> seen;  // shards with the same content share columns
  int64_t total = 0;
  for (uint32_t number = 0; number < index.num_shards(); ++number) {
    const index::ShardPtr shard = index.shard(number);
    std::vector<std::filesystem::path> paths;
    for (const Digest& key : {keys.ids, keys.positions, keys.tiles})
      paths.push_back(index::token_column_path(index.folder_of(number), shard->content, key));
    const bool made =
        std::all_of(paths.begin(), paths.end(), [&](const auto& path) { return is_made(path, *shard); });
    if (made || !seen.insert(paths.front()).second) continue;
    total += record_bytes(*shard);
    missing.emplace_back(number, std::move(paths));
  }
  std::mutex mutex;  // guards done
  int64_t done = 0;
  for (const auto& [number, paths] : missing) {
    const index::ShardPtr shard = index.shard(number);
    ShardCounter counter(index, *shard, encoder, view, source);
    ThreadPool pool(kThreads, 64, "tokens");
    for (size_t first = 0; first < shard->samples.size(); first += kSamplesPerTask) {
      pool.submit([&, first] {
        int64_t bytes = 0;
        for (size_t i = first; i < std::min(first + kSamplesPerTask, shard->samples.size()); ++i)
          bytes += counter.count(shard->samples[i]);
        std::lock_guard lock(mutex);
        done += bytes;
        if (progress) progress(done, total);
      });
    }
    pool.close();
    const Columns& columns = counter.columns();
    index::write_token_column(paths[1], columns.positions);
    index::write_token_column(paths[2], columns.tiles);
    index::write_token_column(paths[0], columns.ids);
  }
  return static_cast<int64_t>(missing.size());
}

}  // namespace chiliad::dataset
