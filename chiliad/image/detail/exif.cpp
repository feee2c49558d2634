#include "chiliad/image/detail/exif.h"

#include "chiliad/image/detail/byte_view.h"

namespace chiliad::image::detail {
namespace {

constexpr uint32_t kOrientationTag = 0x0112;
constexpr int64_t kEntryBytes = 12;

/// Tags in the byte order that the block declares.
class TiffReader {
 public:
  TiffReader(ByteView bytes, bool little) : bytes_(bytes), little_(little) {}
  [[nodiscard]] uint32_t u16(int64_t at) const { return little_ ? bytes_.le16(at) : bytes_.be16(at); }
  [[nodiscard]] uint32_t u32(int64_t at) const { return little_ ? bytes_.le32(at) : bytes_.be32(at); }
  /// One integer stored inline in an entry, 0 for any other type or count.
  [[nodiscard]] uint32_t inline_integer(int64_t entry) const {
    if (u32(entry + 4) != 1) return 0;
    switch (u16(entry + 2)) {
      case 1:  // BYTE
      case 6:
        return bytes_.u8(entry + 8);  // SBYTE
      case 3:                         // SHORT
      case 8:
        return u16(entry + 8);  // SSHORT
      case 4:                   // LONG
      case 9:
        return u32(entry + 8);  // SLONG
      default:
        return 0;
    }
  }

 private:
  ByteView bytes_;
  bool little_;
};

}  // namespace

uint8_t exif_orientation(std::span<const std::byte> tiff) {
  const ByteView bytes(tiff);
  const bool little = bytes.starts_with("II");
  if (!little && !bytes.starts_with("MM")) return 1;
  const TiffReader reader(bytes, little);
  if (reader.u16(2) != 42) return 1;
  const int64_t directory = reader.u32(4);
  const int64_t num_entries = reader.u16(directory);
  uint32_t orientation = 1;
  for (int64_t i = 0; i < num_entries; ++i) {
    const int64_t entry = directory + 2 + i * kEntryBytes;
    if (!bytes.has(entry, kEntryBytes)) break;
    if (reader.u16(entry) == kOrientationTag) orientation = reader.inline_integer(entry);
  }
  return orientation >= 1 && orientation <= 8 ? static_cast<uint8_t>(orientation) : uint8_t{1};
}

}  // namespace chiliad::image::detail
