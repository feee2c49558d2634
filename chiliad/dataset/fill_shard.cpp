#include "chiliad/dataset/detail/fill_shard.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

#include "chiliad/base/error.h"
#include "chiliad/base/hash.h"
#include "chiliad/base/thread_pool.h"
#include "chiliad/dataset/detail/captions.h"
#include "chiliad/dataset/detail/record_shards.h"
#include "chiliad/image/image.h"
#include "chiliad/image/srgb.h"
#include "chiliad/index/content.h"
#include "chiliad/io/file.h"
#include "chiliad/text/conversation.h"
#include "chiliad/text/document_encoder.h"
#include "chiliad/text/stored_text.h"

namespace chiliad::dataset::detail {
namespace {

using index::MediaType;
using index::Part;
using index::SourceFile;

/// What reading one sample's parts gave. `reason` empty: usable. `left_out`: not even a row in the index.
struct SampleRead {
  std::vector<Part> parts;
  std::vector<index::Caption> captions;  ///< part counts from the sample's first
  uint16_t flags = 0;
  bool left_out = false;
  std::string reason;
};

void note_reason(SampleRead& read, const std::string& reason) {
  if (!read.reason.empty()) read.reason += "; ";
  read.reason += reason;
}

void read_image(std::span<const std::byte> bytes, Part& part, SampleRead& read) {
  const auto info = image::probe(bytes);
  if (!info) {
    read.flags |= index::kBadImage;
    note_reason(read, "image: " + (bytes.empty() ? "has no bytes" : info.reason));
    return;
  }
  part.orientation = info.value->orientation;
  part.image_flags = info.value->flags | image::profile_class(bytes, *info.value);
  part.width = static_cast<uint32_t>(info.value->width);
  part.height = static_cast<uint32_t>(info.value->height);
}

void read_line(std::string_view line, uint32_t part_index, SampleRead& read) {
  const text::LineDocument document = text::document_of_line(line);
  if (!document.refusal.empty()) {
    read.left_out = true;
    read.reason = document.refusal;
  } else if (!document.text.empty()) {
    read.captions.push_back({part_index, 0, static_cast<uint32_t>(line.size()), 0});
  }
}

/// The strings of the first of the names that holds a text.
void read_json(std::string_view json, uint32_t part_index, const std::vector<std::string>& names,
               SampleRead& read) {
  const JsonStrings strings = find_json_strings(json, names);
  if (!strings.problem.empty()) return note_reason(read, "caption: the JSON " + strings.problem);
  const size_t before = read.captions.size();
  for (size_t name = 0; name < names.size() && read.captions.size() == before; ++name) {
    for (const JsonString& string : strings.found) {
      if (string.name != name) continue;
      const auto text = text::text_of_json_string(json.substr(string.offset, string.length));
      if (!text.refusal.empty()) note_reason(read, fmt::format("caption: {}: {}", names[name], text.refusal));
      if (!text.text.empty()) read.captions.push_back({part_index, string.offset, string.length, 0});
    }
  }
  if (strings.found.empty())
    note_reason(read, fmt::format("caption: the JSON has no string in {}", fmt::join(names, ", ")));
}

void read_field(std::string_view row, const PartDraft& draft, uint32_t part_index, SampleRead& read) {
  const auto text = text::text_of_csv_field(row.substr(draft.caption_offset, draft.caption_length));
  if (!text.refusal.empty()) note_reason(read, "caption: " + text.refusal);
  if (!text.text.empty())
    read.captions.push_back({part_index, draft.caption_offset, draft.caption_length, 0});
}

void read_conversation(std::string_view record, size_t num_images, uint32_t part_index, SampleRead& read) {
  const text::Conversation conversation = text::conversation_of_record(record);
  if (conversation.refusal.empty() && conversation.images.size() == num_images) {
    read.captions.push_back({part_index, 0, static_cast<uint32_t>(record.size()), 0});
    return;
  }
  read.left_out = true;
  read.reason = conversation.refusal;
  if (read.reason.empty())
    read.reason = fmt::format("has {} pictures, expected {}", num_images, conversation.images.size());
}

void read_captions(std::span<const std::byte> bytes, const PartDraft& draft, uint32_t part_index,
                   const std::vector<std::string>& names, SampleRead& read) {
  if (bytes.size() > kMaxCaptionBytes) {
    note_reason(read,
                fmt::format("caption: has {} bytes, expected at most {}", bytes.size(), kMaxCaptionBytes));
    return;
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (draft.media == MediaType::kJsonLine) return read_line(text, part_index, read);
  if (draft.media == MediaType::kJson) return read_json(text, part_index, names, read);
  if (draft.media == MediaType::kCsv) return read_field(text, draft, part_index, read);
  if (draft.media == MediaType::kConversation) return read_conversation(text, part_index, part_index, read);
  const auto ranges =
      draft.media == MediaType::kTuxpaintText ? tuxpaint_captions(text) : plain_captions(text);
  for (const CaptionRange& range : ranges) {
    read.captions.push_back({part_index, range.offset, range.length, range.language});
  }
}

class ShardFiller {
 public:
  ShardFiller(const std::filesystem::path& root, const ShardDraft& draft, std::vector<std::string> names)
      : root_(root), draft_(draft), caption_names_(std::move(names)) {
    if (draft.files.size() == 1) archive_.emplace(io::File::open_read(root / draft.files[0].path));
  }

  SampleRead read(const SampleDraft& sample) const {
    try {
      return read_parts(sample);
    } catch (const InvalidInput& error) {
      return left_out(error.what());
    } catch (const CorruptData& error) {
      return left_out(error.what());
    }
  }

 private:
  static SampleRead left_out(const std::string& reason) {
    SampleRead read;
    read.left_out = true;
    read.reason = reason;
    return read;
  }

  SampleRead read_parts(const SampleDraft& sample) const {
    SampleRead read;
    std::vector<std::byte> bytes;
    for (const PartDraft& draft : sample.parts) {
      if (draft.length > kMaxPartBytes) {
        return left_out(fmt::format("a part has {} bytes, expected at most {}", draft.length, kMaxPartBytes));
      }
      bytes.resize(draft.length);
      read_bytes(draft, bytes);
      Part part;
      part.file = draft.file;
      part.offset = draft.offset;
      part.length = draft.length;
      part.checksum = hash64(bytes);
      part.media = draft.media;
      if (part.media == MediaType::kImage) {
        read.flags |= index::kHasImage;
        read_image(bytes, part, read);
      }
      if (draft.is_caption)
        read_captions(bytes, draft, static_cast<uint32_t>(read.parts.size()), caption_names_, read);
      read.parts.push_back(part);
    }
    if (read.left_out) return left_out(read.reason);
    if (read.captions.empty()) {
      read.flags |= index::kNoCaption;
      const bool has_text =
          std::any_of(sample.parts.begin(), sample.parts.end(), [](auto& p) { return p.is_caption; });
      const char* what = (read.flags & index::kHasImage) != 0 ? "caption" : "document";
      note_reason(read, fmt::format("{} is {}", what, has_text ? "empty" : "missing"));
    }
    return read;
  }

  void read_bytes(const PartDraft& part, std::span<std::byte> out) const {
    if (archive_.has_value()) return archive_->read_at(static_cast<int64_t>(part.offset), out);
    const SourceFile& expected = draft_.files[part.file];
    const io::File file = io::File::open_read(root_ / expected.path);
    if (file.stamp() != io::FileStamp{expected.size, expected.mtime_ns}) {
      throw Unavailable(file.path().string(),
                        "changed while it was indexed. Index again when nothing writes there");
    }
    file.read_at(static_cast<int64_t>(part.offset), out);
  }

  const std::filesystem::path& root_;
  const ShardDraft& draft_;
  std::vector<std::string> caption_names_;
  std::optional<io::File> archive_;  ///< where all parts lie in one file
};

void append_sample(index::Shard& shard, const SampleDraft& draft, const SampleRead& read) {
  index::Sample sample;
  sample.key_hash = hash64(draft.key);
  sample.first_part = static_cast<uint32_t>(shard.parts.size());
  sample.num_parts = static_cast<uint16_t>(read.parts.size());
  sample.first_caption = static_cast<uint32_t>(shard.captions.size());
  sample.num_captions = static_cast<uint16_t>(read.captions.size());
  sample.flags = read.flags;
  for (index::Caption caption : read.captions) {
    caption.part += sample.first_part;
    shard.captions.push_back(caption);
  }
  shard.parts.insert(shard.parts.end(), read.parts.begin(), read.parts.end());
  shard.samples.push_back(sample);
  shard.keys.push_back(draft.key);
}

std::string file_of(const ShardDraft& draft, const SampleDraft& sample) {
  return sample.parts.empty() ? std::string() : draft.files[sample.parts.front().file].path;
}

int64_t bytes_of(const SampleDraft& sample) {
  int64_t bytes = 0;
  for (const PartDraft& part : sample.parts) bytes += static_cast<int64_t>(part.length);
  return bytes;
}

}  // namespace

std::vector<index::Block> cut_blocks(const index::Shard& shard, int64_t block_bytes) {
  std::vector<index::Block> blocks;
  for (size_t i = 0; i < shard.samples.size(); ++i) {
    if (blocks.empty() || blocks.back().payload_bytes >= static_cast<uint64_t>(block_bytes)) {
      blocks.push_back({static_cast<uint32_t>(i), 0, 0});
    }
    ++blocks.back().num_samples;
    blocks.back().payload_bytes += index::payload_bytes(shard, shard.samples[i]);
  }
  return blocks;
}

FilledShard fill_shard(const std::filesystem::path& root, ShardDraft draft, const IndexOptions& options,
                       const BytesRead& on_bytes) {
  constexpr size_t kSamplesPerTask = 32;
  std::vector<SampleRead> reads(draft.samples.size());
  if (!draft.samples.empty()) {
    const ShardFiller filler(root, draft, caption_names({"", options.caption_key}));
    ThreadPool pool(options.threads, 64, "index");
    for (size_t first = 0; first < reads.size(); first += kSamplesPerTask) {
      pool.submit([&, first] {
        for (size_t i = first; i < std::min(first + kSamplesPerTask, reads.size()); ++i) {
          reads[i] = filler.read(draft.samples[i]);
          on_bytes(bytes_of(draft.samples[i]));
        }
      });
    }
    pool.close();
  }

  FilledShard filled;
  filled.bad = std::move(draft.bad);
  for (size_t i = 0; i < reads.size(); ++i) {
    const SampleDraft& sample = draft.samples[i];
    if (!reads[i].reason.empty()) filled.bad.push_back({sample.key, file_of(draft, sample), reads[i].reason});
    if (!reads[i].left_out) append_sample(filled.shard, sample, reads[i]);
  }
  filled.shard.files = std::move(draft.files);
  filled.shard.blocks = cut_blocks(filled.shard, options.block_bytes);
  filled.shard.content = index::content_digest(filled.shard);
  return filled;
}

}  // namespace chiliad::dataset::detail
