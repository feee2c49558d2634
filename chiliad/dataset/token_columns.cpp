#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <string_view>
#include <vector>

#include "chiliad/base/error.h"
#include "chiliad/base/thread_pool.h"
#include "chiliad/dataset/build_index.h"
#include "chiliad/dataset/detail/read_part.h"
#include "chiliad/index/caption_text.h"
#include "chiliad/io/file.h"
#include "chiliad/text/byte_tokenizer.h"
#include "chiliad/text/document_encoder.h"

namespace chiliad::dataset {
namespace {

using CountTokens = std::function<size_t(std::string_view)>;

/// Captions that lie in one text part are counted from one read of it.
struct CaptionRun {
  size_t first = 0;
  size_t count = 0;
};

std::vector<CaptionRun> runs_by_part(const index::Shard& shard) {
  std::vector<CaptionRun> runs;
  for (size_t i = 0; i < shard.captions.size(); ++i) {
    if (i == 0 || shard.captions[i].part != shard.captions[i - 1].part) runs.push_back({i, 0});
    ++runs.back().count;
  }
  return runs;
}

class ShardTokens {
 public:
  ShardTokens(const index::Index& index, const index::Shard& shard, index::PartSource* source,
              const CountTokens& count)
      : index_(index), shard_(shard), source_(source), count_tokens_(count) {
    column_.caption_tokens.resize(shard.captions.size());
  }

  /// Returns the bytes read.
  int64_t count(const CaptionRun& run) {
    const index::Part& part = shard_.parts[shard_.captions[run.first].part];
    if (part.media == index::MediaType::kConversation) {
      throw InvalidInput(
          index_.folder().string(),
          "holds conversations, which runs with captions or documents cannot read. Set vision.template, or "
          "index captions (docs/guides/your-own-data.md)");
    }
    const std::vector<std::byte> bytes = detail::read_part(index_, shard_, part, source_);
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    for (size_t i = run.first; i < run.first + run.count; ++i) {
      const index::Caption& caption = shard_.captions[i];
      const std::string_view caption_text = text.substr(caption.offset, caption.length);
      column_.caption_tokens[i] =
          static_cast<uint32_t>(count_tokens_(index::caption_text(part.media, caption_text).text));
    }
    return static_cast<int64_t>(part.length);
  }

  [[nodiscard]] const index::TokenColumn& column() const { return column_; }

 private:
  const index::Index& index_;
  const index::Shard& shard_;
  index::PartSource* source_;  // null: files
  const CountTokens& count_tokens_;
  index::TokenColumn column_;
};

int64_t caption_bytes(const index::Shard& shard) {
  int64_t bytes = 0;
  for (const CaptionRun& run : runs_by_part(shard)) {
    bytes += static_cast<int64_t>(shard.parts[shard.captions[run.first].part].length);
  }
  return bytes;
}

bool is_made(const std::filesystem::path& path, const index::Shard& shard) {
  if (!io::stat_file(path).has_value()) return false;
  try {
    (void)index::read_token_column(path, shard.captions.size());
    return true;
  } catch (const CorruptData&) {
    return false;  // made again
  }
}

int64_t build_columns(const index::Index& index, const Digest& tokenizer, const CountTokens& count,
                      const Progress& progress, index::PartSource* source) {
  constexpr int kThreads = 2;
  constexpr size_t kRunsPerTask = 64;
  std::map<std::filesystem::path, const index::Shard*>
      missing;  // shards with the same content share a column
  int64_t total = 0;
  for (uint32_t number = 0; number < index.num_shards(); ++number) {
    const index::Shard& shard = index.shards()[number];
    const auto path = index::token_column_path(index.folder_of(number), shard.content, tokenizer);
    if (is_made(path, shard) || !missing.emplace(path, &shard).second) continue;
    total += caption_bytes(shard);
  }

  std::mutex mutex;  // guards done
  int64_t done = 0;
  for (const auto& [path, shard] : missing) {
    ShardTokens tokens(index, *shard, source, count);
    const auto runs = runs_by_part(*shard);
    ThreadPool pool(kThreads, 64, "tokens");
    for (size_t first = 0; first < runs.size(); first += kRunsPerTask) {
      pool.submit([&, first] {
        int64_t bytes = 0;
        for (size_t i = first; i < std::min(first + kRunsPerTask, runs.size()); ++i)
          bytes += tokens.count(runs[i]);
        std::lock_guard lock(mutex);
        done += bytes;
        if (progress) progress(done, total);
      });
    }
    pool.close();
    index::write_token_column(path, tokens.column());
  }
  return static_cast<int64_t>(missing.size());
}

}  // namespace

int64_t build_token_columns(const index::Index& index, int64_t max_tokens, const Progress& progress,
                            index::PartSource* source) {
  if (max_tokens < 1)
    throw InvalidInput("max_tokens", fmt::format("expected at least 1, got {}", max_tokens));
  const text::ByteTokenizer tokenizer(max_tokens);
  return build_columns(
      index, tokenizer.digest(), [&](std::string_view text) { return tokenizer.encode(text).size(); },
      progress, source);
}

int64_t build_document_columns(const index::Index& index, const text::DocumentEncoder& encoder,
                               const Progress& progress, index::PartSource* source) {
  return build_columns(
      index, encoder.digest(), [&](std::string_view text) { return encoder.encode(text).size(); }, progress,
      source);
}

}  // namespace chiliad::dataset
