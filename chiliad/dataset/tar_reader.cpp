#include "chiliad/dataset/detail/tar_reader.h"

#include <fmt/core.h>

#include <optional>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/dataset/detail/tar_header.h"

namespace chiliad::dataset::detail {
namespace {

/// Limit of a pax header or a long name.
constexpr uint64_t kMaxExtensionBytes = 1 << 20;

uint64_t padded(uint64_t length) {
  return (length + kTarBlock - 1) / kTarBlock * kTarBlock;
}

class TarWalk {
 public:
  explicit TarWalk(const io::File& file) : file_(file), size_(static_cast<uint64_t>(file.size())) {}

  TarListing run() {
    check_start();
    while (position_ < size_) step();
    return std::move(listing_);
  }

 private:
  void check_start() {
    const std::string place = file_.path().string();
    if (size_ == 0) throw InvalidInput(place, "has no bytes: an empty file is no tar. Copy the shard again");
    TarBlock block{};
    (void)file_.read_some_at(0, std::as_writable_bytes(std::span(block)));
    if (is_zero(block) || has_right_checksum(block)) return;
    const std::string guess = guess_container(block);
    if (guess.empty()) throw InvalidInput(place, "is no tar: its first header has a wrong checksum");
    throw InvalidInput(
        place, fmt::format("is {}, expected a plain tar: random access needs it. Unpack it first", guess));
  }

  /// Reads one header with what belongs to it, and moves behind it.
  void step() {
    const uint64_t at = position_;
    if (size_ - at < kTarBlock) return end_in_header(at);
    const TarBlock block = read_block(at);
    if (is_zero(block)) {
      position_ += kTarBlock;
      return;
    }
    if (!has_right_checksum(block)) return resynchronise(at, "header checksum is wrong");
    const auto stored = parse_tar_number(tar_size_field(block));
    if (!stored.has_value()) return resynchronise(at, "size field is no number");
    position_ += kTarBlock;
    const char type = tar_type(block);
    if (type == 'x' || type == 'g' || type == 'L' || type == 'K') return read_extension(at, type, *stored);
    read_member(at, block, type, *stored);
  }

  void read_extension(uint64_t at, char type, uint64_t length) {
    if (length > kMaxExtensionBytes || length > size_ - position_) {
      return resynchronise(at, fmt::format("an extended header of {} bytes does not fit", length));
    }
    std::string text(length, '\0');
    file_.read_at(static_cast<int64_t>(position_), std::as_writable_bytes(std::span(text)));
    position_ += padded(length);
    if (type == 'L') long_name_ = text.substr(0, text.find('\0'));
    if (type != 'x') return;
    pax_ = parse_pax(text);
    if (!pax_.has_value()) resynchronise(at, "a pax record has not the form LENGTH KEY=VALUE");
  }

  void read_member(uint64_t at, const TarBlock& block, char type, uint64_t stored) {
    const PaxRecords pax = std::exchange(pax_, std::nullopt).value_or(PaxRecords{});
    std::optional<std::string> long_name = std::exchange(long_name_, std::nullopt);
    TarMember member;
    member.name = tar_name(block);
    if (long_name.has_value()) member.name = *std::move(long_name);
    if (pax.path.has_value()) member.name = *pax.path;
    member.after_damage = std::exchange(after_damage_, false);
    member.unusable = why_unusable(type, pax);
    const bool has_data = type < '1' || type > '6';
    member.length = has_data ? pax.size.value_or(stored) : 0;
    if (type == 'S') skip_sparse_extensions(block);
    member.offset = position_;
    if (position_ > size_ || member.length > size_ - position_) {
      member.unusable = fmt::format("claims {} bytes from byte {}, past the end of the archive at {}",
                                    member.length, member.offset, size_);
      listing_.members.push_back(std::move(member));
      resynchronise(at, "a member claims more bytes than the archive has");
      after_damage_ = false;  // its header is sound, so the next one's name is whole
      return;
    }
    position_ += padded(member.length);
    const bool is_folder = type == '5' || member.name.ends_with('/');
    if (!is_folder) listing_.members.push_back(std::move(member));
  }

  static std::string why_unusable(char type, const PaxRecords& pax) {
    if (type == '1' || type == '2') return "is a link";
    if (type == 'S' || pax.sparse) return "is a sparse file";
    if (type == '\0' || type == '0' || type == '5' || type == '7') return {};
    return fmt::format("has the member type '{}'", type);
  }

  void skip_sparse_extensions(const TarBlock& header) {
    bool more = sparse_continues(header, true);
    while (more && size_ - position_ >= kTarBlock) {
      more = sparse_continues(read_block(position_), false);
      position_ += kTarBlock;
    }
  }

  /// Goes on at the next header behind `at` whose checksum is right, or at the end.
  void resynchronise(uint64_t at, const std::string& reason) {
    pax_.reset();
    long_name_.reset();
    after_damage_ = true;
    for (uint64_t next = at + kTarBlock; next + kTarBlock <= size_; next += kTarBlock) {
      const TarBlock block = read_block(next);
      if (is_zero(block) || !has_right_checksum(block)) continue;
      listing_.damages.push_back({at, next - at, reason, ""});
      position_ = next;
      return;
    }
    end_in(at, reason);
  }

  void end_in(uint64_t at, const std::string& reason) {
    listing_.damages.push_back({at, size_ - at, reason, ""});
    position_ = size_;
  }

  void end_in_header(uint64_t at) {
    TarBlock block{};
    (void)file_.read_some_at(static_cast<int64_t>(at), std::as_writable_bytes(std::span(block)));
    end_in(at, "the archive is cut inside a header");
    listing_.damages.back().name = long_name_.value_or(tar_name(block));
  }

  TarBlock read_block(uint64_t at) const {
    TarBlock block;
    file_.read_at(static_cast<int64_t>(at), std::as_writable_bytes(std::span(block)));
    return block;
  }

  const io::File& file_;
  uint64_t size_;
  uint64_t position_ = 0;
  TarListing listing_;
  std::optional<PaxRecords> pax_;         // for the next member
  std::optional<std::string> long_name_;  // for the next member
  bool after_damage_ = false;
};

}  // namespace

TarListing list_tar(const io::File& file) {
  return TarWalk(file).run();
}

}  // namespace chiliad::dataset::detail
