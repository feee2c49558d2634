#include "chiliad/image/detail/icc_profile.h"

#include <fmt/core.h>
#include <zlib.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "chiliad/image/detail/byte_view.h"
#include "chiliad/image/detail/jpeg.h"
#include "chiliad/image/detail/limits.h"
#include "chiliad/image/detail/png.h"
#include "chiliad/image/detail/webp.h"
#include "chiliad/image/srgb.h"

namespace chiliad::image::detail {
namespace {

using Bytes = std::vector<std::byte>;

Outcome<Bytes> refuse_profile(std::string_view why) {
  return refuse<Bytes>(fmt::format("ICC profile: {}", why));
}

Outcome<Bytes> refuse_large() {
  return refuse_profile(fmt::format("larger than {} bytes", kMaxProfileBytes));
}

Outcome<Bytes> join_segments(const std::vector<ProfileSegment>& segments) {
  if (segments.empty()) return refuse_profile("no segment of it is whole");
  const size_t num_wanted = segments.front().total;
  std::vector<std::span<const std::byte>> parts(num_wanted);
  int64_t size = 0;
  for (const ProfileSegment& segment : segments) {
    if (segment.total != num_wanted || segment.number == 0 || segment.number > num_wanted)
      return refuse_profile(fmt::format("segment {} of {} contradicts the first, one of {}", segment.number,
                                        segment.total, num_wanted));
    auto& part = parts[segment.number - 1U];
    if (part.data() != nullptr) return refuse_profile(fmt::format("segment {} comes twice", segment.number));
    part = segment.bytes;
    size += static_cast<int64_t>(part.size());
  }
  if (size > kMaxProfileBytes) return refuse_large();
  Bytes profile;
  profile.reserve(static_cast<size_t>(size));
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].data() == nullptr)
      return refuse_profile(fmt::format("segment {} of {} is missing", i + 1, num_wanted));
    profile.insert(profile.end(), parts[i].begin(), parts[i].end());
  }
  return {std::move(profile), {}};
}

/// zlib's data, which may claim to hold anything.
Outcome<Bytes> inflate_profile(std::span<const std::byte> deflated) {
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) return refuse_profile("zlib gives no stream");
  const std::unique_ptr<z_stream, decltype(&inflateEnd)> owner(&stream, &inflateEnd);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(deflated.data()));
  stream.avail_in = static_cast<uInt>(deflated.size());
  Bytes profile;
  int code = Z_OK;
  while (code == Z_OK) {
    constexpr size_t kPiece = 16384;
    const size_t before = profile.size();
    if (before > static_cast<size_t>(kMaxProfileBytes)) return refuse_large();
    profile.resize(before + kPiece);
    stream.next_out = reinterpret_cast<Bytef*>(profile.data() + before);
    stream.avail_out = kPiece;
    code = inflate(&stream, Z_NO_FLUSH);
    profile.resize(profile.size() - stream.avail_out);
  }
  if (code != Z_STREAM_END) return refuse_profile("its compressed data is damaged or cut");
  if (static_cast<int64_t>(profile.size()) > kMaxProfileBytes) return refuse_large();
  return {std::move(profile), {}};
}

/// Body of iCCP: a name, a zero, the method (0), zlib's data.
Outcome<Bytes> unpack_iccp(const PngProfile& chunk) {
  constexpr int64_t kLongestName = 79;
  if (!chunk.crc_fits) return refuse_profile("iCCP: wrong CRC");
  const ByteView body(chunk.body);
  int64_t name = 0;
  while (name <= kLongestName && body.has(name, 1) && body.u8(name) != 0) ++name;
  if (name == 0 || name > kLongestName || !body.has(name, 3) || body.u8(name + 1) != 0)
    return refuse_profile("iCCP: expected a name and zlib's method");
  return inflate_profile(body.part(name + 2, body.size() - name - 2));
}

}  // namespace

Outcome<Bytes> read_profile(std::span<const std::byte> bytes, const Info& info) {
  switch (info.format) {
    case Format::kJpeg:
      return join_segments(profile_segments(bytes));
    case Format::kPng: {
      const auto file = read_png_file(bytes);
      if (!file) return refuse<Bytes>(file.reason);
      return unpack_iccp(file.value->profile);
    }
    case Format::kWebp: {
      const auto chunk = webp_chunk(bytes, "ICCP");
      if (chunk.empty()) return refuse_profile("the chunk ICCP is missing or cut");
      if (static_cast<int64_t>(chunk.size()) > kMaxProfileBytes) return refuse_large();
      return {Bytes(chunk.begin(), chunk.end()), {}};
    }
    default:
      return refuse_profile("none is read of this format");
  }
}

std::shared_ptr<const SrgbTransform> conversion_of(std::span<const std::byte> bytes, const Info& info,
                                                   const DecodeOptions& options) {
  if (options.to_srgb == nullptr || (info.flags & kIccProfile) == 0) return nullptr;
  auto profile = read_profile(bytes, info);
  SrgbConverter::Found found;
  if (profile) {
    found = options.to_srgb->find(*profile.value, samples_of(info));
  } else {
    found.reason = std::move(profile.reason);
  }
  if (options.profile_note != nullptr && !found.reason.empty()) *options.profile_note = found.reason;
  return found.transform;
}

}  // namespace chiliad::image::detail
