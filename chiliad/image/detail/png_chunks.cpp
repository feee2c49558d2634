#include <fmt/core.h>

#include <algorithm>
#include <cctype>

#include "chiliad/image/detail/byte_view.h"
#include "chiliad/image/detail/exif.h"
#include "chiliad/image/detail/limits.h"
#include "chiliad/image/detail/png.h"

namespace chiliad::image::detail {
namespace {

constexpr int64_t kSignatureBytes = 8;
constexpr int64_t kChunkFrame = 12;  // length, type, CRC
constexpr int64_t kIhdrBytes = 13;

constexpr std::array<uint32_t, 256> make_crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t n = 0; n < 256; ++n) {
    uint32_t value = n;
    for (int bit = 0; bit < 8; ++bit) value = (value & 1U) != 0 ? 0xedb88320U ^ (value >> 1U) : value >> 1U;
    table[n] = value;
  }
  return table;
}

uint32_t crc32(std::span<const std::byte> bytes) {
  static constexpr auto kTable = make_crc_table();
  uint32_t crc = ~0U;
  for (const std::byte b : bytes) crc = kTable[(crc ^ static_cast<uint8_t>(b)) & 0xffU] ^ (crc >> 8U);
  return ~crc;
}

struct Chunk {
  int64_t at = 0;    ///< of the length
  int64_t size = 0;  ///< of the body
  std::string_view type;

  [[nodiscard]] bool critical() const { return (static_cast<unsigned char>(type[0]) & 0x20U) == 0; }
};

bool crc_fits(const ByteView& bytes, const Chunk& chunk) {
  return crc32(bytes.part(chunk.at + 4, chunk.size + 4)) == bytes.be32(chunk.at + 8 + chunk.size);
}

bool depth_allowed(uint8_t depth, uint8_t colour) {
  switch (colour) {
    case 0:
      return depth == 1 || depth == 2 || depth == 4 || depth == 8 || depth == 16;
    case 3:
      return depth == 1 || depth == 2 || depth == 4 || depth == 8;
    case 2:
    case 4:
    case 6:
      return depth == 8 || depth == 16;
    default:
      return false;
  }
}

/// Collects what matters from chunk to chunk; a text is a reason to refuse.
class ChunkReader {
 public:
  ChunkReader(std::span<const std::byte> bytes, bool salvage) : bytes_(bytes), salvage_(salvage) {}

  std::string read() {
    if (auto problem = read_ihdr(); !problem.empty()) return problem;
    int64_t at = kSignatureBytes + kChunkFrame + kIhdrBytes;
    while (true) {
      const Chunk chunk{at, static_cast<int64_t>(bytes_.be32(at)), bytes_.text(at + 4, 4)};
      // Once pixel data has come, the decoder says whether rows are missing; what else was cut off is no
      // loss.
      const bool letters =
          chunk.type.size() == 4 && std::all_of(chunk.type.begin(), chunk.type.end(), is_letter);
      if (!letters)
        return saw_idat_ ? "" : fmt::format("png: byte {}: expected a chunk before any pixel data", at);
      if (!bytes_.has(at, kChunkFrame + chunk.size)) return cut_chunk(chunk);
      if (chunk.type == "IEND")
        return saw_idat_ ? "" : fmt::format("png: byte {}: IEND before any pixel data", at);
      if (auto problem = take(chunk); !problem.empty()) return problem;
      at += kChunkFrame + chunk.size;
    }
  }
  PngFile file;

 private:
  static bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

  std::string cut_chunk(const Chunk& chunk) {
    if (salvage_ && chunk.type == "IDAT") {
      file.cut_idat = bytes_.part(chunk.at + 8, chunk.size);
      file.idat_bytes += static_cast<int64_t>(file.cut_idat.size());
      return {};
    }
    if (saw_idat_ && !chunk.critical()) return {};
    return fmt::format("png: byte {}: {}: expected {} bytes, the file ends after {}", chunk.at, chunk.type,
                       chunk.size, std::max<int64_t>(0, bytes_.size() - chunk.at - 8));
  }

  std::string read_ihdr() {
    const Chunk chunk{kSignatureBytes, bytes_.be32(kSignatureBytes), bytes_.text(kSignatureBytes + 4, 4)};
    if (chunk.type != "IHDR" || chunk.size != kIhdrBytes || !bytes_.has(chunk.at, kChunkFrame + kIhdrBytes)) {
      return "png: byte 8: expected a whole IHDR chunk of 13 bytes";
    }
    const int64_t body = chunk.at + 8;
    const uint32_t width = bytes_.be32(body);
    const uint32_t height = bytes_.be32(body + 4);
    if (width > INT32_MAX || height > INT32_MAX)
      return fmt::format("png: IHDR: impossible size {} x {}", width, height);
    const uint8_t colour = bytes_.u8(body + 9);
    file.bit_depth = bytes_.u8(body + 8);
    if (!depth_allowed(file.bit_depth, colour)) {
      return fmt::format("png: IHDR: impossible: {} bits with colour type {}", file.bit_depth, colour);
    }
    if (!crc_fits(bytes_, chunk)) return "png: byte 8: IHDR: wrong CRC";
    file.colour = static_cast<PngColour>(colour);
    file.info.format = Format::kPng;
    file.info.width = static_cast<int32_t>(width);
    file.info.height = static_cast<int32_t>(height);
    set_colour_flags(bytes_.u8(body + 12) != 0);
    file.parts.push_back(bytes_.part(0, kSignatureBytes + kChunkFrame + kIhdrBytes));
    return {};
  }

  void set_colour_flags(bool interlaced) {
    const PngColour colour = file.colour;
    uint16_t flags = interlaced ? kInterlaced : 0;
    if (file.bit_depth == 16) flags |= kSixteenBit;
    if (colour == PngColour::kGreyAlpha || colour == PngColour::kRgbAlpha) flags |= kAlpha;
    if (colour == PngColour::kGrey || colour == PngColour::kGreyAlpha) flags |= kGrey;
    if (colour == PngColour::kPalette) flags |= kPalette;
    file.info.flags = flags;
  }

  std::string take(const Chunk& chunk) {
    if (chunk.type == "IDAT") return take_idat(chunk);
    if (chunk.type == "PLTE") return take_palette(chunk);
    if (chunk.type == "tRNS") return take_transparency(chunk);
    if (chunk.type == "eXIf") {
      take_exif(chunk);
    } else if (chunk.type == "iCCP") {
      take_profile(chunk);
    } else if (chunk.type == "acTL") {
      file.info.flags |= kAnimated;
    } else if (chunk.critical()) {
      return fmt::format("png: byte {}: unknown critical chunk {}", chunk.at, chunk.type);
    }
    return {};
  }

  std::string take_idat(const Chunk& chunk) {
    const auto whole = bytes_.part(chunk.at, kChunkFrame + chunk.size);
    auto& parts = file.parts;
    if (saw_idat_ && parts.back().data() + parts.back().size() == whole.data()) {
      parts.back() = {parts.back().data(), parts.back().size() + whole.size()};
    } else {
      parts.push_back(whole);
    }
    saw_idat_ = true;
    file.idat_bytes += chunk.size;
    return {};
  }

  std::string take_palette(const Chunk& chunk) {
    if (file.colour != PngColour::kPalette) return {};
    if (chunk.size == 0 || chunk.size % 3 != 0 || chunk.size > 768 || !file.palette.empty() || saw_idat_) {
      return fmt::format("png: byte {}: PLTE: expected one chunk of 1 to 256 colours before the pixel data",
                         chunk.at);
    }
    file.palette = bytes_.part(chunk.at + 8, chunk.size);
    file.parts.push_back(bytes_.part(chunk.at, kChunkFrame + chunk.size));
    return {};
  }

  std::string take_transparency(const Chunk& chunk) {
    const int64_t expected = file.colour == PngColour::kGrey ? 2 : file.colour == PngColour::kRgb ? 6 : 0;
    const bool palette = file.colour == PngColour::kPalette;
    if (saw_idat_ || (!palette && expected == 0)) return {};
    // Passing over a damaged tRNS would show the colours that it hides.
    if (!crc_fits(bytes_, chunk)) return fmt::format("png: byte {}: tRNS: wrong CRC", chunk.at);
    if (palette ? chunk.size > 256 : chunk.size < expected) {
      return fmt::format("png: byte {}: tRNS: wrong length {}", chunk.at, chunk.size);
    }
    file.transparency = bytes_.part(chunk.at + 8, chunk.size);
    file.info.flags |= kAlpha;
    return {};
  }

  void take_profile(const Chunk& chunk) {
    if ((file.info.flags & kIccProfile) != 0) return;
    file.info.flags |= kIccProfile;
    file.profile = {bytes_.part(chunk.at + 8, chunk.size), crc_fits(bytes_, chunk)};
  }

  void take_exif(const Chunk& chunk) {
    if (saw_exif_ || !crc_fits(bytes_, chunk)) return;
    saw_exif_ = true;
    // Some writers put JPEG's six header bytes here too.
    const int64_t prefix = bytes_.starts_with(std::string_view("Exif\0\0", 6), chunk.at + 8) ? 6 : 0;
    file.info.orientation = exif_orientation(bytes_.part(chunk.at + 8 + prefix, chunk.size - prefix));
  }

  ByteView bytes_;
  bool salvage_;
  bool saw_idat_ = false;
  bool saw_exif_ = false;
};

}  // namespace

int PngFile::channels() const {
  switch (colour) {
    case PngColour::kRgb:
      return 3;
    case PngColour::kGreyAlpha:
      return 2;
    case PngColour::kRgbAlpha:
      return 4;
    default:
      return 1;
  }
}

Outcome<PngFile> read_png_file(std::span<const std::byte> bytes, bool salvage) {
  ChunkReader reader(bytes, salvage);
  if (auto problem = reader.read(); !problem.empty()) return refuse<PngFile>(std::move(problem));
  return {std::move(reader.file), {}};
}

}  // namespace chiliad::image::detail
