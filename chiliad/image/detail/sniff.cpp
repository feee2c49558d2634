#include "chiliad/image/detail/sniff.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "chiliad/image/detail/byte_view.h"

namespace chiliad::image::detail {
namespace {

struct Magic {
  std::string_view bytes;
  std::string_view name;
};

constexpr Magic kOtherContent[] = {
    {"version https://git-lfs", "a Git LFS pointer file, not the image itself; fetch the object it names"},
    {std::string_view("\x1f\x8b", 2), "gzip data"},
    {"PK\x03\x04", "a zip archive"},
    {std::string_view("\x28\xb5\x2f\xfd", 4), "zstd data"},
    {std::string_view("\x00\x00\x00\x0cjP  ", 8), "JPEG 2000, unsupported format"},
    {std::string_view("\xff\x4f\xff\x51", 4), "JPEG 2000 codestream, unsupported format"},
    {std::string_view("\xff\x0a", 2), "JPEG XL, unsupported format"},
    {std::string_view("\x00\x00\x00\x0cJXL ", 8), "JPEG XL, unsupported format"},
    {std::string_view("II*\0", 4), "TIFF, unsupported format"},
    {std::string_view("MM\0*", 4), "TIFF, unsupported format"},
    {"8BPS", "Photoshop document, unsupported format"},
    {"%PDF", "PDF, unsupported format"},
};

/// The start of a text in lower case, without a byte order mark and leading blanks.
std::string lower_start(const ByteView& view) {
  std::string_view text = view.text(0, 512);
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  const size_t first = text.find_first_not_of(" \t\r\n");
  std::string lower(first == std::string_view::npos ? std::string_view() : text.substr(first));
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

std::string first_bytes(const ByteView& view) {
  std::string hex;
  for (int64_t i = 0; i < std::min<int64_t>(view.size(), 8); ++i) hex += fmt::format(" {:02x}", view.u8(i));
  return "of an unknown format, first bytes" + hex;
}

}  // namespace

Format sniff(std::span<const std::byte> bytes) {
  const ByteView view(bytes);
  if (view.starts_with(std::string_view("\xff\xd8\xff", 3))) return Format::kJpeg;
  if (view.starts_with(std::string_view("\x89PNG\r\n\x1a\n", 8))) return Format::kPng;
  if (view.starts_with("RIFF") && view.starts_with("WEBP", 8)) return Format::kWebp;
  if (view.starts_with("GIF87a") || view.starts_with("GIF89a")) return Format::kGif;
  // "BM" alone is too weak: the reserved words and the header's size must fit as well.
  if (view.starts_with("BM") && view.le32(6) == 0 && view.le32(14) >= 12 && view.le32(14) <= 256)
    return Format::kBmp;
  return Format::kUnknown;
}

std::string guess_content(std::span<const std::byte> bytes) {
  const ByteView view(bytes);
  if (view.size() == 0) return "empty, no bytes at all";
  for (const Magic& magic : kOtherContent) {
    if (view.starts_with(magic.bytes)) return std::string(magic.name);
  }
  if (view.starts_with("ftyp", 4)) {
    const std::string_view brand = view.text(8, 4);
    const bool avif = brand == "avif" || brand == "avis";
    return avif ? "AVIF, unsupported format" : "HEIF or another ISO media file, unsupported format";
  }
  const std::string text = lower_start(view);
  if (text.find("<svg") != std::string::npos) return "SVG, unsupported format";
  if (text.starts_with("<!doctype html") || text.starts_with("<html") ||
      text.find("<head") != std::string::npos) {
    return "an HTML page";
  }
  if (text.starts_with("<?xml") || text.starts_with("<error")) return "XML text";
  if (text.starts_with("{") || text.starts_with("[")) return "JSON text";
  if (std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; }))
    return "zero bytes only";
  return first_bytes(view);
}

}  // namespace chiliad::image::detail
