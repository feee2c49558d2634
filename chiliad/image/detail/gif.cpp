#include "chiliad/image/detail/gif.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "chiliad/image/detail/byte_view.h"
#include "chiliad/image/detail/limits.h"
#include "chiliad/image/detail/row_sink.h"

namespace chiliad::image::detail {
namespace {

constexpr int kMaxCodeBits = 12;
constexpr int kMaxCodes = 1 << kMaxCodeBits;
// The shortest code has three bits, and no code stands for more pixels than there are codes.
constexpr int64_t kMaxPixelsPerByte = 8 * kMaxCodes / 3;

struct Frame {
  int32_t left = 0;
  int32_t top = 0;
  int32_t width = 0;
  int32_t height = 0;
  bool interlaced = false;
  int64_t table = 0;  ///< position of its colours
  int num_colors = 0;
  int transparent = -1;
  int64_t data = 0;  ///< position of the code size
};

struct GifFile {
  Info info;
  std::optional<Frame> frame;  ///< the first
};

/// Walks the blocks up to the second picture.
class BlockReader {
 public:
  explicit BlockReader(ByteView bytes) : bytes_(bytes) {}

  Outcome<GifFile> read() {
    if (!bytes_.has(0, 13)) return refuse<GifFile>("gif: the file ends inside the header");
    file_.info.format = Format::kGif;
    file_.info.width = static_cast<int32_t>(bytes_.le16(6));
    file_.info.height = static_cast<int32_t>(bytes_.le16(8));
    file_.info.flags = kPalette;
    read_table(bytes_.u8(10), 13);
    at_ = 13 + 3 * int64_t{num_colors_};
    while (bytes_.has(at_, 1)) {
      const uint8_t kind = bytes_.u8(at_);
      if (kind == 0x2c) {
        if (file_.frame) {
          file_.info.flags |= kAnimated;
          break;
        }
        if (!bytes_.has(at_, 11)) return refuse<GifFile>("gif: the file ends inside the header of a picture");
        read_frame();
      } else if (kind == 0x21) {
        if (bytes_.u8(at_ + 1) == 0xf9 && !file_.frame) read_control();
        at_ += 2;
        skip_blocks();
      } else {
        break;
      }
    }
    if (file_.frame && file_.frame->transparent >= 0) file_.info.flags |= kAlpha;
    return {std::move(file_), {}};
  }

 private:
  void read_table(uint8_t packed, int64_t at) {
    if ((packed & 0x80U) == 0) return;
    table_ = at;
    num_colors_ = 2 << (packed & 7U);
  }
  void read_control() {
    if ((bytes_.u8(at_ + 3) & 1U) != 0) transparent_ = bytes_.u8(at_ + 6);
  }
  void read_frame() {
    const uint8_t packed = bytes_.u8(at_ + 9);
    Frame frame;
    frame.left = static_cast<int32_t>(bytes_.le16(at_ + 1));
    frame.top = static_cast<int32_t>(bytes_.le16(at_ + 3));
    frame.width = static_cast<int32_t>(bytes_.le16(at_ + 5));
    frame.height = static_cast<int32_t>(bytes_.le16(at_ + 7));
    frame.interlaced = (packed & 0x40U) != 0;
    at_ += 10;
    read_table(packed, at_);
    if ((packed & 0x80U) != 0) at_ += 3 * int64_t{num_colors_};
    frame.table = table_;
    frame.num_colors = num_colors_;
    frame.transparent = transparent_;
    frame.data = at_++;
    skip_blocks();
    file_.info.width = std::max(file_.info.width, frame.left + frame.width);
    file_.info.height = std::max(file_.info.height, frame.top + frame.height);
    file_.frame = frame;
  }
  void skip_blocks() {
    while (bytes_.u8(at_) != 0) at_ += 1 + bytes_.u8(at_);
    ++at_;
  }

  ByteView bytes_;
  GifFile file_;
  int64_t at_ = 0;
  int64_t table_ = 0;
  int num_colors_ = 0;
  int transparent_ = -1;
};

/// Bits of the data blocks, lowest first.
class CodeReader {
 public:
  CodeReader(ByteView bytes, int64_t at) : bytes_(bytes), at_(at) {}

  /// -1 at the end of the data.
  int next(int num_bits) {
    while (num_held_ < num_bits) {
      if (left_in_block_ == 0) {
        left_in_block_ = bytes_.u8(at_++);
        if (left_in_block_ == 0) return -1;
      }
      if (!bytes_.has(at_, 1)) return -1;
      held_ |= uint32_t{bytes_.u8(at_++)} << num_held_;
      num_held_ += 8;
      --left_in_block_;
    }
    const auto code = static_cast<int>(held_ & ((1U << num_bits) - 1));
    held_ >>= num_bits;
    num_held_ -= num_bits;
    return code;
  }

 private:
  ByteView bytes_;
  int64_t at_;
  int left_in_block_ = 0;
  uint32_t held_ = 0;
  int num_held_ = 0;
};

/// Takes LZW codes and gives colour indices. A code stands for the string of another one and one more index.
class Unpacker {
 public:
  explicit Unpacker(int code_size) : code_size_(code_size), clear_(1 << code_size) { clear(); }

  [[nodiscard]] int num_bits() const { return num_bits_; }
  [[nodiscard]] bool is_end(int code) const { return code == clear_ + 1; }
  /// Appends to `out`; false for a code that nothing stands for.
  bool take(int code, std::vector<uint8_t>& out) {
    if (code == clear_) {
      clear();
      return true;
    }
    if (code > num_codes_ || (code == num_codes_ && previous_ < 0)) return false;
    const size_t start = out.size();
    // A code that is only now being made is the last string and its own first index.
    for (int at = code == num_codes_ ? previous_ : code; at >= 0; at = prefix_[static_cast<size_t>(at)])
      out.push_back(suffix_[static_cast<size_t>(at)]);
    std::reverse(out.begin() + static_cast<ptrdiff_t>(start), out.end());
    const uint8_t first = out[start];
    if (code == num_codes_) out.push_back(first);
    if (previous_ >= 0 && num_codes_ < kMaxCodes) add(first);
    previous_ = code;
    return true;
  }

 private:
  void clear() {
    for (int i = 0; i < clear_; ++i) {
      prefix_[static_cast<size_t>(i)] = -1;
      suffix_[static_cast<size_t>(i)] = static_cast<uint8_t>(i);
    }
    num_codes_ = clear_ + 2;
    num_bits_ = code_size_ + 1;
    previous_ = -1;
  }
  void add(uint8_t last) {
    prefix_[static_cast<size_t>(num_codes_)] = static_cast<int16_t>(previous_);
    suffix_[static_cast<size_t>(num_codes_)] = last;
    if (++num_codes_ == 1 << num_bits_ && num_bits_ < kMaxCodeBits) ++num_bits_;
  }

  int code_size_;
  int clear_;
  int num_codes_ = 0;
  int num_bits_ = 0;
  int previous_ = -1;
  std::array<int16_t, kMaxCodes> prefix_{};
  std::array<uint8_t, kMaxCodes> suffix_{};
};

/// The stored rows of an interlaced frame, in the order of their places.
std::vector<int32_t> row_order(const Frame& frame) {
  std::vector<int32_t> rows;
  struct Pass {
    int32_t first;
    int32_t step;
  };
  for (const Pass& pass : {Pass{0, 8}, Pass{4, 8}, Pass{2, 4}, Pass{1, 2}})
    for (int32_t y = pass.first; y < frame.height; y += pass.step) rows.push_back(y);
  return rows;
}

std::string unpack(const ByteView& bytes, const Frame& frame, std::vector<uint8_t>& indices) {
  const int code_size = bytes.u8(frame.data);
  if (code_size < 1 || code_size > 8)
    return fmt::format("gif: byte {}: expected a code size of 1 to 8 bits, got {}", frame.data, code_size);
  const auto wanted = static_cast<size_t>(frame.width) * static_cast<size_t>(frame.height);
  CodeReader codes(bytes, frame.data + 1);
  Unpacker unpacker(code_size);
  while (indices.size() < wanted) {
    const int code = codes.next(unpacker.num_bits());
    if (code < 0 || unpacker.is_end(code)) {
      return fmt::format("gif: row {}: the data ends early",
                         indices.size() / static_cast<size_t>(frame.width));
    }
    if (!unpacker.take(code, indices))
      return fmt::format("gif: row {}: bad code", indices.size() / static_cast<size_t>(frame.width));
  }
  indices.resize(wanted);
  return {};
}

std::string frame_problem(const ByteView& bytes, const Frame& frame) {
  if (frame.width == 0 || frame.height == 0) return "gif: a picture without pixels";
  if (frame.num_colors == 0 || !bytes.has(frame.table, 3 * int64_t{frame.num_colors}))
    return "gif: no table of colours";
  const int64_t rest = std::max<int64_t>(0, bytes.size() - frame.data);
  if (int64_t{frame.width} * frame.height > rest * kMaxPixelsPerByte) {
    return fmt::format("gif: header: {} x {} pixels do not fit into {} bytes of data", frame.width,
                       frame.height, rest);
  }
  return {};
}

}  // namespace

Outcome<Info> read_gif_header(std::span<const std::byte> bytes) {
  auto file = BlockReader(ByteView(bytes)).read();
  if (!file) return refuse<Info>(std::move(file.reason));
  return {file.value->info, {}};
}

Outcome<HostArray> decode_gif(std::span<const std::byte> bytes, const Info& stored,
                              const std::array<uint8_t, 3>& background) {
  const ByteView view(bytes);
  auto file = BlockReader(view).read();
  if (!file) return refuse<HostArray>(std::move(file.reason));
  if (!file.value->frame) return refuse<HostArray>("gif: no picture in the file");
  const Frame& frame = *file.value->frame;
  std::string problem = frame_problem(view, frame);
  std::vector<uint8_t> indices;
  if (problem.empty()) problem = unpack(view, frame, indices);
  if (!problem.empty()) return refuse<HostArray>(std::move(problem));
  RowSink sink(stored.width, stored.height, stored.orientation);
  sink.fill(background);
  std::array<std::array<uint8_t, 3>, 256> colors{};
  for (int i = 0; i < frame.num_colors; ++i)
    for (int c = 0; c < 3; ++c)
      colors[static_cast<size_t>(i)][static_cast<size_t>(c)] = view.u8(frame.table + 3 * i + c);
  if (frame.transparent >= 0) colors[static_cast<size_t>(frame.transparent)] = background;
  const int num_known = std::max(frame.num_colors, frame.transparent + 1);
  const auto order = frame.interlaced ? row_order(frame) : std::vector<int32_t>();
  std::vector<uint8_t> rgb(size_t{3} * static_cast<size_t>(frame.width));
  for (int32_t i = 0; i < frame.height; ++i) {
    const uint8_t* row = indices.data() + int64_t{i} * frame.width;
    if (std::any_of(row, row + frame.width, [&](uint8_t index) { return index >= num_known; }))
      return refuse<HostArray>(fmt::format("gif: row {}: colour index beyond the table", i));
    for (int32_t x = 0; x < frame.width; ++x)
      std::copy_n(colors[row[x]].begin(), 3, rgb.begin() + 3 * int64_t{x});
    sink.write(frame.top + (order.empty() ? i : order[static_cast<size_t>(i)]), rgb.data(), frame.width,
               frame.left);
  }
  return {sink.take(), {}};
}

}  // namespace chiliad::image::detail
