#include <fmt/core.h>

#include <set>

#include "chiliad/image/detail/byte_view.h"
#include "chiliad/image/detail/exif.h"
#include "chiliad/image/detail/jpeg.h"
#include "chiliad/image/detail/limits.h"

namespace chiliad::image::detail {
namespace {

constexpr uint8_t kEndOfImage = 0xd9;
constexpr uint8_t kStartOfScan = 0xda;
constexpr uint8_t kApp1 = 0xe1;
constexpr uint8_t kApp2 = 0xe2;

constexpr std::string_view kIccHeader("ICC_PROFILE\0", 12);

bool is_frame(uint8_t marker) {
  return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
}
bool is_progressive(uint8_t marker) {
  return marker == 0xc2 || marker == 0xca;
}
bool stands_alone(uint8_t marker) {
  return marker == 0x01 || (marker >= 0xd0 && marker <= 0xd8);
}

struct Segment {
  uint8_t marker = 0;
  int64_t body = 0;  ///< position after the length
  int64_t size = 0;  ///< of the body
};

/// Steps from segment to segment by their lengths; a search for marker bytes would stumble over thumbnails.
class SegmentWalker {
 public:
  explicit SegmentWalker(ByteView bytes) : bytes_(bytes) {}

  /// Nothing at the end or at damage; `problem()` tells which.
  std::optional<Segment> next() {
    if (at_ >= bytes_.size()) return fail("file ends");
    if (bytes_.u8(at_) != 0xff) return fail("expected a marker");
    while (bytes_.u8(at_) == 0xff) ++at_;
    if (at_ >= bytes_.size()) return fail("file ends");
    const uint8_t marker = bytes_.u8(at_++);
    if (stands_alone(marker) || marker == kEndOfImage) return Segment{marker, at_, 0};
    const int64_t length = bytes_.be16(at_);
    if (length < 2 || !bytes_.has(at_, length)) return fail("file ends inside a segment");
    const Segment segment{marker, at_ + 2, length - 2};
    at_ += length;
    return segment;
  }
  /// Passes over the entropy-coded data of a scan, to the next marker that is no restart.
  void skip_scan_data() {
    for (; at_ < bytes_.size(); ++at_) {
      if (bytes_.u8(at_) != 0xff) continue;
      const uint8_t marker = bytes_.u8(at_ + 1);
      if (marker != 0 && marker != 0xff && !(marker >= 0xd0 && marker <= 0xd7)) return;
    }
  }
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  std::optional<Segment> fail(const char* what) {
    problem_ = fmt::format("jpeg: byte {}: {}", at_, what);
    return std::nullopt;
  }

  ByteView bytes_;
  int64_t at_ = 2;
  std::string problem_;
};

std::string frame_problem(const ByteView& bytes, const Segment& frame) {
  const int precision = bytes.u8(frame.body);
  const int num_components = bytes.u8(frame.body + 5);
  const auto place = fmt::format("jpeg: byte {}: frame (SOF{})", frame.body, frame.marker - 0xc0);
  if (frame.size < 6) return place + ": too short";
  const uint8_t process = frame.marker;
  const bool known = process <= 0xc2 || process == 0xc9 || process == 0xca;
  if (!known) return place + ": unsupported process (lossless or hierarchical)";
  if (precision != 8)
    return fmt::format("{}: unsupported precision: expected 8 bits, got {}", place, precision);
  if (bytes.be16(frame.body + 1) == 0 || bytes.be16(frame.body + 3) == 0) {
    return fmt::format("{}: no pixels: {} x {}", place, bytes.be16(frame.body + 3),
                       bytes.be16(frame.body + 1));
  }
  if (num_components != 1 && num_components != 3 && num_components != 4) {
    return fmt::format("{}: unsupported number of components: expected 1, 3 or 4, got {}", place,
                       num_components);
  }
  return {};
}

void read_frame(const ByteView& bytes, const Segment& frame, Info& info) {
  info.height = static_cast<int32_t>(bytes.be16(frame.body + 1));
  info.width = static_cast<int32_t>(bytes.be16(frame.body + 3));
  const int num_components = bytes.u8(frame.body + 5);
  if (num_components == 1) info.flags |= kGrey;
  if (num_components == 4) info.flags |= kCmyk;
  if (is_progressive(frame.marker)) info.flags |= kProgressive;
}

}  // namespace

Outcome<Info> read_jpeg_header(std::span<const std::byte> bytes) {
  const ByteView view(bytes);
  SegmentWalker walker(view);
  constexpr std::string_view kExifHeader("Exif\0\0", 6);
  Info info;
  info.format = Format::kJpeg;
  bool saw_exif = false;
  while (const auto segment = walker.next()) {
    if (segment->marker == kStartOfScan || segment->marker == kEndOfImage) break;
    if (is_frame(segment->marker)) {
      if (auto problem = frame_problem(view, *segment); !problem.empty())
        return refuse<Info>(std::move(problem));
      read_frame(view, *segment, info);
    } else if (segment->marker == kApp1 && !saw_exif && view.starts_with(kExifHeader, segment->body)) {
      saw_exif = true;
      info.orientation = exif_orientation(view.part(segment->body + 6, segment->size - 6));
    } else if (segment->marker == kApp2 && view.starts_with(kIccHeader, segment->body)) {
      info.flags |= kIccProfile;
    }
  }
  if (info.width != 0) return {info, {}};
  return refuse<Info>(walker.problem().empty() ? "jpeg: no frame before the first scan"
                                               : walker.problem() + " before any frame");
}

std::vector<ProfileSegment> profile_segments(std::span<const std::byte> bytes) {
  constexpr size_t kMost = 255;
  const ByteView view(bytes);
  SegmentWalker walker(view);
  std::vector<ProfileSegment> found;
  while (const auto segment = walker.next()) {
    if (segment->marker == kStartOfScan || segment->marker == kEndOfImage || found.size() == kMost) break;
    if (segment->marker != kApp2 || !view.starts_with(kIccHeader, segment->body)) continue;
    const auto header = static_cast<int64_t>(kIccHeader.size());
    if (segment->size < header + 3) continue;  // holds nothing of it
    found.push_back({view.u8(segment->body + header), view.u8(segment->body + header + 1),
                     view.part(segment->body + header + 2, segment->size - header - 2)});
  }
  return found;
}

bool all_components_scanned(std::span<const std::byte> bytes) {
  const ByteView view(bytes);
  SegmentWalker walker(view);
  size_t num_components = 0;
  std::set<uint8_t> scanned;
  while (const auto segment = walker.next()) {
    if (segment->marker == kEndOfImage) break;
    if (is_frame(segment->marker)) num_components = view.u8(segment->body + 5);
    if (segment->marker != kStartOfScan) continue;
    for (int i = 0; i < view.u8(segment->body); ++i) scanned.insert(view.u8(segment->body + 1 + 2 * i));
    walker.skip_scan_data();
  }
  return scanned.size() >= num_components;
}

}  // namespace chiliad::image::detail
