#include "chiliad/image/srgb.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "chiliad/image/encode.h"
#include "tests/support/kits.h"
#include "tests/support/picture_bytes.h"
#include "tests/support/picture_compare.h"

namespace chiliad::image {
namespace {

using test::ByteVector;
using testing::HasSubstr;

constexpr uint8_t kApp2 = 0xe2;

ByteVector stored_profile(const std::string& name) {
  const auto kit = test::golden_kit() / "colour_profiles" / "colour_profiles.safetensors";
  return test::read_safetensors_lite(kit).at(name + "/profile").bytes;
}

ByteVector plain_jpeg() {
  return encode_jpeg(test::sloped_picture(24, 16), 95);
}

/// A segment; of the JPEG those given last stand first.
ByteVector with_segment(std::span<const std::byte> jpeg, uint8_t number, uint8_t total,
                        std::span<const std::byte> bytes) {
  std::string prefix("ICC_PROFILE\0", 12);
  prefix += static_cast<char>(number);
  prefix += static_cast<char>(total);
  return test::with_jpeg_segment(jpeg, kApp2, prefix, bytes);
}

ByteVector with_profile(std::span<const std::byte> profile) {
  return with_segment(plain_jpeg(), 1, 1, profile);
}

/// The bytes of a PNG's iCCP with stored blocks of deflate: no compression, so a test can say what it wants.
ByteVector iccp_body(std::span<const std::byte> zlib_data) {
  const std::string_view name("x\0\0", 3);
  ByteVector body(name.size() + zlib_data.size());
  std::memcpy(body.data(), name.data(), name.size());
  std::copy(zlib_data.begin(), zlib_data.end(), body.begin() + static_cast<ptrdiff_t>(name.size()));
  return body;
}

class SrgbTest : public testing::Test {
 protected:
  HostArray converted(std::span<const std::byte> bytes) {
    note_.clear();
    DecodeOptions options;
    options.to_srgb = &converter_;
    options.profile_note = &note_;
    auto picture = decode(bytes, options);
    EXPECT_TRUE(picture) << picture.reason;
    return std::move(*picture.value);
  }
  /// Pixels as stored, and why.
  void expect_left(std::span<const std::byte> bytes, const std::string& why) {
    const HostArray picture = converted(bytes);
    EXPECT_THAT(note_, HasSubstr(why));
    EXPECT_EQ(note_.find('\n'), std::string::npos);
    EXPECT_EQ(test::distance(picture.bytes(), decode(bytes, {}).value->bytes()).max_abs, 0);
  }
  void expect_converted(std::span<const std::byte> bytes) {
    const HostArray picture = converted(bytes);
    EXPECT_EQ(note_, "");
    EXPECT_GT(test::distance(picture.bytes(), decode(bytes, {}).value->bytes()).mean_abs, 1.0);
  }

  SrgbConverter converter_;
  std::string note_;
};

TEST_F(SrgbTest, APictureWithoutProfileStaysAsItIs) {
  const HostArray picture = converted(plain_jpeg());
  EXPECT_EQ(note_, "");
  EXPECT_EQ(test::distance(picture.bytes(), decode(plain_jpeg(), {}).value->bytes()).max_abs, 0);
  EXPECT_EQ(converter_.num_made(), 0);
}

TEST_F(SrgbTest, AProfileOfOneSegmentIsApplied) {
  expect_converted(with_profile(stored_profile("adobe")));
}

TEST_F(SrgbTest, SegmentsAreJoinedByTheirNumbers) {
  const ByteVector profile = stored_profile("adobe");
  const std::span<const std::byte> bytes(profile);
  const auto whole = converted(with_profile(profile));
  auto jpeg = with_segment(plain_jpeg(), 1, 3, bytes.first(100));  // ends up behind the others
  jpeg = with_segment(jpeg, 3, 3, bytes.subspan(300));
  jpeg = with_segment(jpeg, 2, 3, bytes.subspan(100, 200));
  EXPECT_EQ(test::distance(converted(jpeg).bytes(), whole.bytes()).max_abs, 0);
  EXPECT_EQ(note_, "");
}

TEST_F(SrgbTest, SegmentsThatContradictAreLeft) {
  const ByteVector profile = stored_profile("adobe");
  const std::span<const std::byte> bytes(profile);
  expect_left(with_segment(plain_jpeg(), 1, 2, bytes), "segment 2 of 2 is missing");
  expect_left(with_segment(with_profile(profile), 1, 1, bytes), "segment 1 comes twice");
  expect_left(with_segment(with_profile(profile), 2, 2, bytes), "segment 1 of 1 contradicts the first");
  expect_left(with_segment(plain_jpeg(), 0, 1, bytes), "segment 0 of 1");
  expect_left(with_segment(plain_jpeg(), 5, 0, bytes), "segment 5 of 0");
  expect_left(test::with_jpeg_segment(plain_jpeg(), kApp2, std::string_view("ICC_PROFILE\0\1", 13), {}),
              "no segment of it is whole");
}

TEST_F(SrgbTest, AProfileOfOtherSamplesIsLeft) {
  expect_left(with_profile(stored_profile("grey")), "is for GRAY, the picture is RGB");
  expect_left(with_profile(stored_profile("ink")), "is for CMYK, the picture is RGB");
}

TEST_F(SrgbTest, ACutProfileIsLeftOrApplied) {
  const ByteVector profile = stored_profile("adobe");
  for (size_t size = 0; size < profile.size(); ++size) {
    const auto jpeg = with_profile(std::span(profile).first(size));
    const HostArray picture = converted(jpeg);
    if (size < 300) {
      EXPECT_THAT(note_, HasSubstr("ICC profile: ")) << size;
    }
    if (note_.empty()) continue;
    EXPECT_EQ(test::distance(picture.bytes(), decode(jpeg, {}).value->bytes()).max_abs, 0) << size;
  }
}

TEST_F(SrgbTest, NoByteOfAProfileBreaksTheDecode) {
  for (const char* name : {"p3", "ink"}) {
    const ByteVector profile = stored_profile(name);
    const auto flags = probe(with_profile(profile)).value->flags;
    for (size_t at = 0; at < std::min<size_t>(profile.size(), 800); at += 3) {
      ByteVector changed = profile;
      changed[at] ^= std::byte{0xff};
      const auto jpeg = with_profile(changed);
      EXPECT_EQ(converted(jpeg).shape(), Shape({16, 24, 3})) << name << " " << at;
      EXPECT_EQ(probe(jpeg).value->flags, flags);
      EXPECT_NE(profile_class(jpeg, *probe(jpeg).value), 0);
    }
  }
}

TEST_F(SrgbTest, AProfileThatInflatesWithoutEndIsLeft) {
  // 64 MiB of zeros in 65 kB.
  const auto bomb = test::read_bytes_lite(test::hard_files_kit() / "images" / "png_iccp_bomb.png");
  expect_left(bomb, "larger than 4194304 bytes");
}

TEST_F(SrgbTest, ADamagedChunkIsLeft) {
  const ByteVector png = encode_png(test::sloped_picture(8, 8));
  const auto body = iccp_body(std::as_bytes(std::span("no zlib")));
  expect_left(test::with_png_chunk(png, test::png_chunk("iCCP", body)), "compressed data is damaged");
  ByteVector chunk = test::png_chunk("iCCP", body);
  chunk.back() ^= std::byte{1};
  expect_left(test::with_png_chunk(png, chunk), "wrong CRC");
  expect_left(test::with_png_chunk(png, test::png_chunk("iCCP", {})), "expected a name");
  expect_left(test::with_png_chunk(png, test::png_chunk("iCCP", ByteVector(90, std::byte{'a'}))),
              "expected a name");
}

TEST_F(SrgbTest, AConversionIsMadeOnceAProfile) {
  const auto jpeg = with_profile(stored_profile("adobe"));
  for (int i = 0; i < 5; ++i) static_cast<void>(converted(jpeg));
  EXPECT_EQ(converter_.num_made(), 1);
}

TEST_F(SrgbTest, OnlySoManyConversionsAreKept) {
  SrgbConverter small(1);
  DecodeOptions options;
  options.to_srgb = &small;
  const auto adobe = with_profile(stored_profile("adobe"));
  const auto p3 = with_profile(stored_profile("p3"));
  for (const auto* jpeg : {&adobe, &adobe, &p3, &adobe}) EXPECT_TRUE(decode(*jpeg, options));
  EXPECT_EQ(small.num_made(), 3);
}

TEST_F(SrgbTest, ThreadsShareAConverter) {
  const auto jpeg = with_profile(stored_profile("p3"));
  const HostArray expected = converted(jpeg);
  std::vector<int> apart(4, -1);
  std::vector<std::thread> threads;
  for (int& worst : apart) {
    threads.emplace_back([&] {
      DecodeOptions options;
      options.to_srgb = &converter_;
      worst = 0;
      for (int i = 0; i < 20; ++i) {
        const auto picture = decode(jpeg, options);
        worst = std::max(worst, test::distance(picture.value->bytes(), expected.bytes()).max_abs);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_THAT(apart, testing::Each(0));
}

uint16_t class_of(std::span<const std::byte> bytes) {
  return profile_class(bytes, *probe(bytes).value);
}

TEST(ProfileClassTest, NamesWhatAProfileIs) {
  EXPECT_EQ(class_of(plain_jpeg()), 0);
  EXPECT_EQ(class_of(with_profile(stored_profile("p3"))), kIccP3);
  EXPECT_EQ(class_of(with_profile(stored_profile("adobe"))), kIccOther);
  EXPECT_EQ(class_of(with_profile(stored_profile("ink"))), kIccOther);
  EXPECT_EQ(class_of(with_profile(ByteVector(200, std::byte{0xff}))), kIccBroken);
  const auto kit = test::golden_kit() / "colour_profiles" / "colour_profiles.safetensors";
  EXPECT_EQ(class_of(test::read_safetensors_lite(kit).at("srgb.png/file").bytes), kIccSrgb);
}

TEST(ProfileClassTest, EncodersStoreAProfile) {
  const auto profile = stored_profile("adobe");
  const HostArray picture = test::sloped_picture(20, 10);
  for (const auto& bytes : {encode_png(picture, profile), encode_jpeg(picture, 90, profile)}) {
    EXPECT_EQ(rgb_profile(bytes, *probe(bytes).value), profile);
    EXPECT_EQ(class_of(bytes), kIccOther);
  }
}

TEST(ProfileClassTest, AProfileForOtherPixelsIsNotThatOfADecodedPicture) {
  for (const auto& profile : {stored_profile("ink"), ByteVector(200, std::byte{0xff})}) {
    const auto bytes = with_profile(profile);
    EXPECT_TRUE(rgb_profile(bytes, *probe(bytes).value).empty());
  }
  const auto plain = plain_jpeg();
  EXPECT_TRUE(rgb_profile(plain, *probe(plain).value).empty());
}

}  // namespace
}  // namespace chiliad::image
