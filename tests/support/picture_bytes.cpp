#include "tests/support/picture_bytes.h"

namespace chiliad::test {
namespace {

constexpr size_t kAfterIhdr = 8 + 12 + 13;

void append(ByteVector& to, std::span<const std::byte> more) {
  to.insert(to.end(), more.begin(), more.end());
}
void append(ByteVector& to, std::string_view text) {
  append(to, std::as_bytes(std::span(text)));
}
void append_be32(ByteVector& to, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) to.push_back(static_cast<std::byte>(value >> shift));
}

uint32_t crc32(std::span<const std::byte> bytes) {
  uint32_t crc = ~0U;
  for (const std::byte b : bytes) {
    crc ^= static_cast<uint8_t>(b);
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1U) != 0 ? 0xedb88320U ^ crc >> 1U : crc >> 1U;
  }
  return ~crc;
}

ByteVector inserted(std::span<const std::byte> file, size_t at, std::span<const std::byte> more) {
  ByteVector result(file.begin(), file.begin() + static_cast<ptrdiff_t>(at));
  append(result, more);
  append(result, file.subspan(at));
  return result;
}

}  // namespace

HostArray sloped_picture(int32_t width, int32_t height) {
  HostArray picture(DType::kU8, Shape{height, width, 3});
  uint8_t* pixel = picture.as<uint8_t>().data();
  for (int32_t y = 0; y < height; ++y) {
    for (int32_t x = 0; x < width; ++x, pixel += 3) {
      pixel[0] = static_cast<uint8_t>(255 * x / width);
      pixel[1] = static_cast<uint8_t>(255 * y / height);
      pixel[2] = static_cast<uint8_t>(255 * (x + 2 * y) / (width + 2 * height));
    }
  }
  return picture;
}

ByteVector exif_block(uint16_t orientation, bool little_endian) {
  ByteVector block;
  append(block, little_endian ? "II" : "MM");
  const auto put = [&](uint32_t value, int num_bytes) {
    for (int i = 0; i < num_bytes; ++i) {
      block.push_back(static_cast<std::byte>(value >> 8 * (little_endian ? i : num_bytes - 1 - i)));
    }
  };
  put(42, 2);
  put(8, 4);       // where the directory is
  put(1, 2);       // entries
  put(0x0112, 2);  // orientation
  put(3, 2);       // SHORT
  put(1, 4);
  put(orientation, 2);
  put(0, 2);
  put(0, 4);  // no next directory
  return block;
}

ByteVector with_jpeg_segment(std::span<const std::byte> jpeg, uint8_t marker, std::string_view prefix,
                             std::span<const std::byte> body) {
  const size_t length = 2 + prefix.size() + body.size();
  ByteVector segment{std::byte{0xff}, std::byte{marker}, static_cast<std::byte>(length >> 8U),
                     static_cast<std::byte>(length)};
  append(segment, prefix);
  append(segment, body);
  return inserted(jpeg, 2, segment);
}

ByteVector with_exif(std::span<const std::byte> jpeg, std::span<const std::byte> tiff) {
  return with_jpeg_segment(jpeg, 0xe1, std::string_view("Exif\0\0", 6), tiff);
}

ByteVector png_chunk(std::string_view type, std::span<const std::byte> body) {
  ByteVector chunk;
  append_be32(chunk, static_cast<uint32_t>(body.size()));
  append(chunk, type);
  append(chunk, body);
  append_be32(chunk, crc32(std::span(chunk).subspan(4)));
  return chunk;
}

ByteVector with_png_chunk(std::span<const std::byte> png, std::span<const std::byte> chunk) {
  return inserted(png, kAfterIhdr, chunk);
}

}  // namespace chiliad::test
