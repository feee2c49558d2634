#include "chiliad/store/block_folder.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "chiliad/base/error.h"
#include "chiliad/base/log.h"
#include "chiliad/base/planted.h"

namespace chiliad::store {
namespace fs = std::filesystem;
namespace {

constexpr const char* kMarker = "CHILIAD-BLOCK-CACHE";
constexpr const char* kMarkerText =
    "chiliad block cache, version 1\nBlocks of remote data. The whole folder may be deleted while nothing "
    "uses it.\n";
constexpr const char* kLock = "owner.lock";
constexpr std::string_view kSuffix = ".block";
constexpr std::string_view kUnfinished = ".block.tmp";
constexpr std::array<char, 8> kMagic{'C', 'H', 'B', 'L', 'O', 'C', 'K', '1'};
constexpr size_t kHexDigits = 32;

struct RawFooter {
  std::array<char, 8> magic;
  uint64_t key_high, key_low;
  int64_t payload_bytes;
  uint64_t payload_high, payload_low;
  uint64_t flags;
  uint64_t checksum;  // of all before
};
static_assert(sizeof(RawFooter) == kBlockFooterBytes);

uint64_t checksum_of(const RawFooter& raw) {
  return hash64(as_bytes_of(raw).first(sizeof(RawFooter) - sizeof(uint64_t)));
}

RawFooter to_raw(const BlockFooter& footer) {
  RawFooter raw{kMagic,
                footer.key.high,
                footer.key.low,
                footer.payload_bytes,
                footer.payload.high,
                footer.payload.low,
                footer.damaged ? 1U : 0U,
                0};
  raw.checksum = checksum_of(raw);
  return raw;
}

/// The key in the name of a file of ours; nothing for other names.
std::optional<Digest> key_of_name(std::string_view name, std::string_view suffix) {
  if (name.size() != kHexDigits + suffix.size() || !name.ends_with(suffix)) return std::nullopt;
  const std::string_view digits = name.substr(0, kHexDigits);
  const bool is_hex = std::all_of(digits.begin(), digits.end(),
                                  [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
  if (!is_hex) return std::nullopt;
  return Digest::from_hex(digits);
}

bool is_our_name(const fs::path& path) {
  const std::string name = path.filename().string();
  return key_of_name(name, kSuffix).has_value() || key_of_name(name, kUnfinished).has_value();
}

std::optional<BlockFooter> read_footer(const io::File& file) {
  const int64_t size = file.size();
  if (size < kBlockFooterBytes) return std::nullopt;
  RawFooter raw{};
  file.read_at(size - kBlockFooterBytes, std::as_writable_bytes(std::span(&raw, 1)));
  if (raw.magic != kMagic || raw.checksum != checksum_of(raw)) return std::nullopt;
  if (raw.payload_bytes != size - kBlockFooterBytes) return std::nullopt;
  return BlockFooter{{raw.key_high, raw.key_low},
                     raw.payload_bytes,
                     {raw.payload_high, raw.payload_low},
                     (raw.flags & 1U) != 0};
}

std::optional<BlockFooter> footer_at(const fs::path& path) {
  try {
    return read_footer(io::File::open_read(path));
  } catch (const Error& error) {
    log_warn("block cache: {}", error.what());
    return std::nullopt;
  }
}

}  // namespace

BlockFolder::BlockFolder(const fs::path& root) : root_(root), blocks_(root / "blocks") {
  take_root();
  lock_ = io::FileLock::try_lock(root_ / kLock, std::to_string(::getpid()));
  if (lock_.has_value()) {
    io::make_folders(blocks_);
    return;
  }
  throw Unavailable(root_.string(),
                    fmt::format("block cache: is in use by process {}. Wait for its end, or give this run "
                                "another folder: --set store.folder=DIR",
                                block_folder_owner(root_)));
}

void BlockFolder::take_root() {
  io::make_folders(root_);
  if (io::stat_file(root_ / kMarker).has_value()) return;
  for (const auto& entry : fs::directory_iterator(root_)) {
    if (planted_bug("cache_takes_any_folder")) break;
    if (entry.path().filename() == fmt::format("{}.tmp", kMarker)) continue;
    throw InvalidInput(
        root_.string(),
        fmt::format("block cache: expected an empty folder or one that a cache made, found {}. "
                    "Nothing in it was touched; give another folder: --set store.folder=DIR",
                    entry.path().filename().string()));
  }
  io::write_atomic(root_ / kMarker, kMarkerText);
}

fs::path BlockFolder::path_of(const Digest& key) const {
  return blocks_ / (key.hex() + std::string(kSuffix));
}

void BlockFolder::remove_ours(const fs::path& path) const {
  const bool ours =
      path.parent_path() == blocks_ && is_our_name(path) && fs::is_regular_file(fs::symlink_status(path));
  if (!ours && !planted_bug("cache_deletes_foreign")) return;
  io::remove_file(path);
}

std::vector<BlockFolder::Found> BlockFolder::recover() {
  std::vector<Found> found;
  int64_t foreign = 0;
  for (const auto& entry : fs::directory_iterator(blocks_)) {
    const fs::path& path = entry.path();
    const bool regular = fs::is_regular_file(entry.symlink_status());
    const auto key = key_of_name(path.filename().string(), kSuffix);
    if (regular && key.has_value()) {
      const auto footer = footer_at(path);
      if (footer.has_value() && footer->key == *key) {
        found.push_back({*footer, footer->payload_bytes + kBlockFooterBytes});
        continue;
      }
    }
    if (!regular || !is_our_name(path)) ++foreign;
    remove_ours(path);
  }
  if (foreign > 0) log_warn("{}: {} files are not of the block cache; they stay", blocks_.string(), foreign);
  std::sort(found.begin(), found.end(),
            [](const Found& a, const Found& b) { return a.footer.key < b.footer.key; });
  return found;
}

void BlockFolder::write(const BlockFooter& footer, std::span<const std::byte> payload) {
  const fs::path path = path_of(footer.key);
  const fs::path unfinished = path.string() + ".tmp";
  try {
    io::File file = io::File::create(unfinished);
    file.write(payload);
    const RawFooter raw = to_raw(footer);
    file.write(as_bytes_of(raw));
    file.sync();
    file.close();
    io::rename_path(unfinished, path);
  } catch (const Unavailable&) {
    try {
      remove_ours(unfinished);
    } catch (const Unavailable& error) {
      log_warn("{}", error.what());  // dropped by the next owner
    }
    throw;
  }
}

io::File BlockFolder::open(const Digest& key) const {
  return io::File::open_read(path_of(key));
}

bool BlockFolder::is_intact(const io::File& file, const BlockFooter& footer) const {
  if (planted_bug("cache_skips_digest")) return true;
  constexpr int64_t kChunk = 1 << 20;
  std::vector<std::byte> chunk(static_cast<size_t>(std::min(kChunk, footer.payload_bytes)));
  Hasher hasher;
  for (int64_t at = 0; at < footer.payload_bytes; at += kChunk) {
    const auto part =
        std::span(chunk).first(static_cast<size_t>(std::min(kChunk, footer.payload_bytes - at)));
    if (file.read_some_at(at, part) != static_cast<int64_t>(part.size())) return false;
    hasher.add_bytes(part);
  }
  return hasher.digest() == footer.payload;
}

void BlockFolder::remove(const Digest& key) {
  remove_ours(path_of(key));
}

int64_t BlockFolder::bytes_on_disk() const {
  int64_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(blocks_)) {
    if (!is_our_name(entry.path())) continue;
    const auto stamp = io::stat_file(entry.path());
    if (stamp.has_value()) bytes += stamp->size;
  }
  return bytes;
}

std::string block_folder_owner(const fs::path& root) {
  if (!io::FileLock::is_held(root / kLock)) return "";
  return io::read_text(root / kLock, 1 << 10);
}

}  // namespace chiliad::store
