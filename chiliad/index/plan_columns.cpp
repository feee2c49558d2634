// A file: blocks one after another, each at a multiple of 16 bytes; their places; a footer. A block: a
// header, then its columns, each as narrow as its values allow (docs/formats/plan.md).
#include "chiliad/index/plan_columns.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <mutex>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/base/thread_pool.h"

namespace chiliad::index {
namespace {

constexpr size_t kUnit = 16;
constexpr size_t kFlushBytes = size_t{4} << 20;
constexpr uint16_t kVaries = 0xFFFF;
constexpr const char* kComplete = "complete";

struct BlockHeader {
  uint32_t shard = 0;         ///< counted from the first of the columns
  uint32_t first_sample = 0;  ///< in the shard
  uint32_t num_samples = 0;
  uint32_t first_caption = 0;  ///< in the shard
  uint32_t num_captions = 0;
  uint32_t language = 0;       ///< of all captions, where has_languages is 0
  uint16_t captions_each = 0;  ///< of each sample; kVaries: a column says it
  uint8_t side_bytes = 0;      ///< of a width or height; 0: no sample has a picture
  uint8_t token_bytes = 0;     ///< of a count; 0: not counted
  uint8_t has_languages = 0;   ///< a column
  std::array<uint8_t, 3> reserved{};
  uint64_t checksum = 0;  ///< xxh3-64 of the header up to here and of the columns
};
static_assert(sizeof(BlockHeader) == 40);

struct Footer {
  std::array<char, 8> magic{'C', 'H', 'P', 'L', 'N', '\r', '\n', '\x1a'};
  uint32_t version = 1;
  uint32_t number = 0;
  uint64_t num_blocks = 0;
  uint64_t num_samples = 0;
  uint64_t places_at = 0;
  uint64_t checksum = 0;  ///< low half of xxh3-128 of the places and the footer up to here
};
static_assert(sizeof(Footer) == 48);

uint64_t checksum_of(const BlockHeader& header, std::span<const std::byte> columns) {
  Hasher hasher;
  hasher.add_bytes(as_bytes_of(header).first(offsetof(BlockHeader, checksum)));
  hasher.add_bytes(columns);
  return hasher.digest().low;
}

uint64_t checksum_of(const Footer& footer, std::span<const uint32_t> places) {
  Hasher hasher;
  hasher.add_bytes(std::as_bytes(places));
  hasher.add_bytes(as_bytes_of(footer).first(offsetof(Footer, checksum)));
  return hasher.digest().low;
}

uint8_t width_of(uint32_t largest) {
  if (largest <= 0xFF) return 1;
  return largest <= 0xFFFF ? 2 : 4;
}

/// Appends values of `bytes` bytes each.
class ColumnWriter {
 public:
  explicit ColumnWriter(std::vector<std::byte>& out) : out_(out) {}
  void add(uint64_t value, size_t bytes) {
    const size_t at = out_.size();
    out_.resize(at + bytes);
    std::memcpy(&out_[at], &value, bytes);
  }

 private:
  std::vector<std::byte>& out_;
};

/// Walks the columns of a block.
class ColumnWalker {
 public:
  explicit ColumnWalker(std::span<const std::byte> bytes) : bytes_(bytes) {}
  /// Calls `set(i, value)` for `count` values.
  template <typename Set>
  [[nodiscard]] bool column(size_t count, size_t bytes, const Set& set) {
    if (count * bytes > bytes_.size() - at_) return false;
    for (size_t i = 0; i < count; ++i) {
      uint64_t value = 0;
      std::memcpy(&value, bytes_.data() + at_ + i * bytes, bytes);
      set(i, value);
    }
    at_ += count * bytes;
    return true;
  }
  [[nodiscard]] size_t at() const { return at_; }

 private:
  std::span<const std::byte> bytes_;
  size_t at_ = 0;
};

BlockHeader describe(const BlockRows& rows) {
  BlockHeader header;
  header.num_samples = static_cast<uint32_t>(rows.samples.size());
  header.num_captions = static_cast<uint32_t>(rows.captions.size());
  if (rows.samples.empty()) return header;
  header.first_caption = rows.samples.front().first_caption;
  header.captions_each = rows.samples.front().num_captions;
  uint32_t side = 0;
  uint64_t next = header.first_caption;
  for (const auto& sample : rows.samples) {
    CHILIAD_CHECK_EQ(sample.first_caption, next);
    next += sample.num_captions;
    side = std::max({side, sample.width, sample.height});
    if (sample.num_captions != header.captions_each) header.captions_each = kVaries;
  }
  CHILIAD_CHECK_EQ(next, uint64_t{header.first_caption} + header.num_captions);
  header.side_bytes = side == 0 ? 0 : std::max<uint8_t>(2, width_of(side));
  if (!rows.captions.empty()) header.language = rows.captions.front().language;
  uint32_t tokens = 0;
  for (const auto& caption : rows.captions) {
    tokens = std::max(tokens, caption.tokens);
    if (caption.language != header.language) header.has_languages = 1;
  }
  if (rows.counted) header.token_bytes = width_of(tokens);
  return header;
}

void append_columns(const BlockHeader& header, const BlockRows& rows, std::vector<std::byte>& out) {
  ColumnWriter writer(out);
  for (const auto& sample : rows.samples) writer.add(sample.key_hash, sizeof(uint64_t));
  for (const auto& sample : rows.samples) writer.add(sample.width, header.side_bytes);
  for (const auto& sample : rows.samples) writer.add(sample.height, header.side_bytes);
  if (header.captions_each == kVaries)
    for (const auto& sample : rows.samples) writer.add(sample.num_captions, sizeof(uint16_t));
  if (header.has_languages != 0)
    for (const auto& caption : rows.captions) writer.add(caption.language, sizeof(uint32_t));
  for (const auto& caption : rows.captions) writer.add(caption.tokens, header.token_bytes);
}

/// Whether the columns are those that the header tells of.
bool fill_rows(const BlockHeader& header, std::span<const std::byte> columns, BlockRows& rows) {
  ColumnWalker walk(columns);
  auto& samples = rows.samples;
  auto& captions = rows.captions;
  samples.resize(header.num_samples);
  captions.resize(header.num_captions);
  const bool varies = header.captions_each == kVaries;
  bool whole = walk.column(samples.size(), 8, [&](size_t i, uint64_t value) { samples[i].key_hash = value; });
  whole = whole && walk.column(samples.size(), header.side_bytes, [&](size_t i, uint64_t value) {
    samples[i].width = static_cast<uint32_t>(value);
  });
  whole = whole && walk.column(samples.size(), header.side_bytes, [&](size_t i, uint64_t value) {
    samples[i].height = static_cast<uint32_t>(value);
  });
  whole = whole && walk.column(varies ? samples.size() : 0, 2, [&](size_t i, uint64_t value) {
    samples[i].num_captions = static_cast<uint16_t>(value);
  });
  whole = whole &&
          walk.column(header.has_languages != 0 ? captions.size() : 0, 4,
                      [&](size_t i, uint64_t value) { captions[i].language = static_cast<uint32_t>(value); });
  whole = whole && walk.column(captions.size(), header.token_bytes, [&](size_t i, uint64_t value) {
    captions[i].tokens = static_cast<uint32_t>(value);
  });
  uint32_t at = 0;
  for (auto& sample : samples) {
    if (!varies) sample.num_captions = header.captions_each;
    sample.captions_at = at;
    sample.first_caption = header.first_caption + at;
    at += sample.num_captions;
  }
  if (header.has_languages == 0)
    for (auto& caption : captions) caption.language = header.language;
  return whole && at == header.num_captions;
}

std::filesystem::path file_path(const std::filesystem::path& folder, int64_t number) {
  return folder / fmt::format("{:06}.chplan", number);
}

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& what) {
  throw CorruptData(path.string(), what + ". Delete its folder: it is made again");
}

/// The footer, and the places.
std::pair<Footer, std::vector<uint32_t>> read_places(const io::File& file, int64_t number) {
  const int64_t size = file.size();
  Footer footer;
  if (size < static_cast<int64_t>(sizeof footer)) fail(file.path(), fmt::format("has only {} bytes", size));
  file.read_at(size - static_cast<int64_t>(sizeof footer), std::as_writable_bytes(std::span(&footer, 1)));
  if (footer.magic != Footer{}.magic) fail(file.path(), "footer: magic is wrong, these are no plan columns");
  if (footer.version != 1 || footer.number != static_cast<uint32_t>(number))
    fail(file.path(), fmt::format("footer: expected version 1 and number {}, got {} and {}", number,
                                  footer.version, footer.number));
  const auto expected = static_cast<uint64_t>(size) - sizeof footer;
  if (footer.num_blocks > expected / 4 || footer.places_at != expected - 4 * (footer.num_blocks + 1))
    fail(file.path(), "footer: its places do not fit the file");
  std::vector<uint32_t> places(footer.num_blocks + 1);
  file.read_at(static_cast<int64_t>(footer.places_at), std::as_writable_bytes(std::span(places)));
  if (footer.checksum != checksum_of(footer, places)) fail(file.path(), "places: checksum is wrong");
  return {footer, std::move(places)};
}

/// Shards of one file: consecutive, until there are enough samples.
std::vector<std::pair<uint32_t, uint32_t>> cut_files(const Index& index, uint32_t first, uint32_t end,
                                                     int64_t file_samples) {
  std::vector<std::pair<uint32_t, uint32_t>> files;
  int64_t samples = 0;
  for (uint32_t s = first; s < end; ++s) {
    if (files.empty() || samples >= file_samples) {
      files.emplace_back(s, s);
      samples = 0;
    }
    samples += index.first_sample(s + 1) - index.first_sample(s);
    files.back().second = s + 1;
  }
  return files;
}

}  // namespace

std::filesystem::path plan_columns_folder(const std::filesystem::path& index, const Digest& data,
                                          const Digest& tokenizer) {
  Hasher hasher;
  hasher.add("plan columns 1").add(data).add(tokenizer);
  return index / "plan" / hasher.digest().hex();
}

PlanColumnsWriter::PlanColumnsWriter(std::filesystem::path folder, uint32_t number)
    : path_(file_path(folder, number)),
      unfinished_(path_.string() + fmt::format(".{}.tmp", ::getpid())),
      file_([&] {
        io::make_folders(folder);
        return io::File::create(unfinished_);
      }()) {
  places_.push_back(0);
}

void PlanColumnsWriter::add(const BlockRows& rows) {
  BlockHeader header = describe(rows);
  header.shard = rows.shard;
  header.first_sample = static_cast<uint32_t>(rows.first_sample);
  const size_t at = buffer_.size();
  buffer_.resize(at + sizeof header);
  append_columns(header, rows, buffer_);
  header.checksum = checksum_of(header, std::span(buffer_).subspan(at + sizeof header));
  std::memcpy(&buffer_[at], &header, sizeof header);
  buffer_.resize((buffer_.size() + kUnit - 1) / kUnit * kUnit);
  num_samples_ += header.num_samples;
  const auto end = static_cast<uint64_t>(written_) + buffer_.size();
  CHILIAD_CHECK_LE(end / kUnit, uint64_t{UINT32_MAX});
  places_.push_back(static_cast<uint32_t>(end / kUnit));
  if (buffer_.size() < kFlushBytes) return;
  file_.write(buffer_);
  written_ += static_cast<int64_t>(buffer_.size());
  buffer_.clear();
}

void PlanColumnsWriter::finish() {
  file_.write(buffer_);
  written_ += static_cast<int64_t>(buffer_.size());
  Footer footer;
  footer.number = static_cast<uint32_t>(std::stoul(path_.stem().string()));
  footer.num_blocks = places_.size() - 1;
  footer.num_samples = static_cast<uint64_t>(num_samples_);
  footer.places_at = static_cast<uint64_t>(written_);
  footer.checksum = checksum_of(footer, places_);
  file_.write(std::as_bytes(std::span(places_)));
  file_.write(as_bytes_of(footer));
  file_.sync();
  file_.close();
  io::rename_path(unfinished_, path_);
  io::sync_folder(path_.parent_path());
}

void make_plan_columns(const Index& index, uint32_t first_shard, uint32_t end_shard,
                       const std::filesystem::path& folder, const CountTokens& tokens,
                       const std::function<void(int64_t, int64_t)>& progress, int64_t file_samples) {
  const auto files = cut_files(index, first_shard, end_shard, file_samples);
  const int64_t total = index.first_sample(end_shard) - index.first_sample(first_shard);
  std::mutex mutex;  // guards done
  int64_t done = 0;
  const auto make_shard = [&](uint32_t s, PlanColumnsWriter& writer) {
    const IndexColumns columns(index, s, s + 1);
    BlockRows rows;
    for (int64_t b = 0; b < columns.num_blocks(); ++b) {
      columns.read(b, rows);
      rows.counted = tokens != nullptr;
      for (const auto& sample : rows.samples)
        for (uint32_t c = 0; rows.counted && c < sample.num_captions; ++c)
          rows.captions[sample.captions_at + c].tokens = tokens(s, sample.first_caption + c);
      rows.shard = s - first_shard;
      rows.first_sample -= index.first_sample(s);
      writer.add(rows);
    }
    std::lock_guard lock(mutex);
    done += columns.num_samples();
    if (progress) progress(done, total);
  };
  ThreadPool pool(static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, 8U)), 8, "plan");
  for (size_t f = 0; f < files.size(); ++f) {
    if (io::stat_file(file_path(folder, static_cast<int64_t>(f))).has_value()) continue;
    pool.submit([&, f] {
      PlanColumnsWriter writer(folder, static_cast<uint32_t>(f));
      for (uint32_t s = files[f].first; s < files[f].second; ++s) make_shard(s, writer);
      writer.finish();
    });
  }
  pool.close();
  finish_plan_columns(folder, static_cast<int64_t>(files.size()));
}

bool has_plan_columns(const std::filesystem::path& folder) {
  return io::stat_file(folder / kComplete).has_value();
}

void finish_plan_columns(const std::filesystem::path& folder, int64_t num_files) {
  io::write_atomic(folder / kComplete, fmt::format("{}\n", num_files));
}

PlanColumns::PlanColumns(std::filesystem::path folder, std::vector<int64_t> first_samples,
                         uint32_t first_shard)
    : folder_(std::move(folder)), first_samples_(std::move(first_samples)), first_shard_(first_shard) {
  const std::string text = io::read_text(folder_ / kComplete, 64);
  int64_t count = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), count).ec != std::errc() || count < 0)
    fail(folder_ / kComplete, fmt::format("expected a number of files, got '{}'", text.substr(0, 20)));
  for (int64_t f = 0; f < count; ++f) {
    io::File file = io::File::open_read(file_path(folder_, f));
    auto [footer, places] = read_places(file, f);
    // Blocks are read anywhere: what lies behind them is another window's.
    ::posix_fadvise(file.fd(), 0, 0, POSIX_FADV_RANDOM);
    num_samples_ += static_cast<int64_t>(footer.num_samples);
    first_block_.push_back(first_block_.back() + static_cast<int64_t>(footer.num_blocks));
    files_.push_back({std::move(file), std::move(places)});
  }
  if (num_samples_ != first_samples_.back() - first_samples_.front()) {
    fail(folder_, fmt::format("has {} samples, expected {} of the index", num_samples_,
                              first_samples_.back() - first_samples_.front()));
  }
}

PlanColumns::Place PlanColumns::place_of(int64_t block) const {
  CHILIAD_CHECK(0 <= block && block < num_blocks(), "block {} of {}", block, num_blocks());
  const auto after = std::upper_bound(first_block_.begin(), first_block_.end(), block);
  const auto f = static_cast<size_t>(after - first_block_.begin() - 1);
  const auto& places = files_[f].places;
  const auto local = static_cast<size_t>(block - first_block_[f]);
  const auto at = [&](size_t b) { return static_cast<int64_t>(places[b]) * static_cast<int64_t>(kUnit); };
  return {&files_[f], at(local), at(local + 1) - at(local)};
}

void PlanColumns::read(int64_t block, BlockRows& rows) const {
  thread_local std::vector<std::byte> bytes;
  const Place place = place_of(block);
  BlockHeader header;
  if (place.size < static_cast<int64_t>(sizeof header))
    fail(place.file->file.path(), "places: a block is too short");
  bytes.resize(static_cast<size_t>(place.size));
  place.file->file.read_at(place.offset, bytes);
  std::memcpy(&header, bytes.data(), sizeof header);
  const auto damaged = [&](const char* what) {
    fail(place.file->file.path(), fmt::format("block at byte {}: {}", place.offset, what));
  };
  const std::span<const std::byte> columns = std::span<const std::byte>(bytes).subspan(sizeof header);
  // The header's sizes decide how much of the last unit is padding.
  const uint64_t size =
      uint64_t{header.num_samples} * (8 + 2 * header.side_bytes + (header.captions_each == kVaries ? 2 : 0)) +
      uint64_t{header.num_captions} * (header.token_bytes + (header.has_languages != 0 ? 4 : 0));
  if (size > columns.size() || columns.size() - size >= kUnit) damaged("its columns do not fit it");
  if (header.checksum != checksum_of(header, columns.first(size))) damaged("checksum is wrong");
  const auto padding = columns.subspan(size);
  if (std::any_of(padding.begin(), padding.end(), [](std::byte byte) { return byte != std::byte{0}; }))
    damaged("padding is not zero");
  if (header.side_bytes > 4 || header.token_bytes > 4) damaged("columns are too wide");
  if (!fill_rows(header, columns.first(size), rows)) damaged("its columns do not fit it");
  if (size_t{header.shard} + 1 >= first_samples_.size()) damaged("is of no shard of the index");
  rows.shard = first_shard_ + header.shard;
  rows.first_sample = first_samples_[header.shard] + header.first_sample;
  if (rows.first_sample + header.num_samples > first_samples_[header.shard + 1])
    damaged("ends beyond its shard");
  rows.counted = header.token_bytes != 0;
}

void PlanColumns::will_need(const std::vector<int64_t>& blocks) const {
  for (const int64_t block : blocks) {
    const Place place = place_of(block);
    ::posix_fadvise(place.file->file.fd(), place.offset, place.size, POSIX_FADV_WILLNEED);
  }
}

int64_t PlanColumns::num_bytes() const {
  int64_t bytes = 0;
  for (const auto& file : files_)
    bytes += static_cast<int64_t>(file.places.back()) * static_cast<int64_t>(kUnit);
  return bytes;
}

}  // namespace chiliad::index
