#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "chiliad/base/rng.h"
#include "chiliad/checkpoint/detail/positional.h"
#include "chiliad/checkpoint/snapshot.h"
#include "tests/support/checkpoint_kit.h"

namespace chiliad::checkpoint {
namespace {

/// docs/formats/snapshot.md, written down a second time without its speed.
uint64_t reference(const test::WholeTensor& tensor, const Box& box) {
  const auto element = static_cast<size_t>(dtype_bytes(tensor.dtype));
  uint64_t sum = 0;
  for (int64_t i = 0; i < box.count(); ++i) {
    int64_t rest = i;
    uint64_t index = 0;
    uint64_t stride = 1;
    for (int axis = tensor.shape.rank() - 1; axis >= 0; --axis) {
      index += static_cast<uint64_t>(box.offset[axis] + rest % box.size[axis]) * stride;
      rest /= box.size[axis];
      stride *= static_cast<uint64_t>(tensor.shape[axis]);
    }
    uint64_t bits = 0;
    std::memcpy(&bits, tensor.data.data() + index * element, element);
    uint64_t z = (index + 1) * 0x9E3779B97F4A7C15ULL + bits * 0xC2B2AE3D27D4EB4FULL;
    z = (z ^ (z >> 32)) * 0x165667B19E3779F9ULL;
    sum += z ^ (z >> 29);
  }
  return sum;
}

uint64_t digest_of(const test::WholeTensor& tensor, const Box& box) {
  const auto data = test::cut(tensor, box);
  return positional_digest(tensor.dtype, tensor.shape, box, data.data());
}

TEST(PositionalDigestTest, IsTheDocumentedSum) {
  for (const auto& tensor : test::make_tensors(1)) {
    EXPECT_EQ(digest_of(tensor, Box::whole(tensor.shape)), reference(tensor, Box::whole(tensor.shape)))
        << tensor.name;
  }
}

TEST(PositionalDigestTest, IsTheDocumentedSumForInnerBoxes) {
  const auto tensor = test::make_tensors(2)[2];  // [3, 4, 2]
  for (const Box& box : {Box{{1, 1, 0}, {2, 2, 2}}, Box{{0, 0, 1}, {3, 4, 1}}, Box{{2, 3, 1}, {1, 1, 1}}}) {
    EXPECT_EQ(digest_of(tensor, box), reference(tensor, box)) << box.to_string();
  }
}

TEST(PositionalDigestTest, IsFixedForever) {
  const std::vector<float> values{1.0F, -2.0F, 0.5F};
  const Shape shape{3};
  EXPECT_EQ(positional_digest(DType::kF32, shape, Box::whole(shape),
                              reinterpret_cast<const std::byte*>(values.data())),
            0x81DADDF1857EE884ULL);
}

TEST(PositionalDigestTest, OfNothingIsZero) {
  EXPECT_EQ(positional_digest(DType::kF32, Shape{0, 4}, Box::whole(Shape{0, 4}), nullptr), 0U);
}

TEST(PositionalDigestTest, AddsUpOverDisjointBoxes) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    const auto tensor = test::make_tensors(seed)[2];  // [3, 4, 2]
    const auto column = static_cast<int64_t>(rng.below(5));
    const auto row = static_cast<int64_t>(rng.below(4));
    const uint64_t sum = digest_of(tensor, {{0, 0, 0}, {3, column, 2}}) +
                         digest_of(tensor, {{0, column, 0}, {row, 4 - column, 2}}) +
                         digest_of(tensor, {{row, column, 0}, {3 - row, 4 - column, 2}});
    ASSERT_EQ(sum, digest_of(tensor, Box::whole(tensor.shape)));
  }
}

TEST(PositionalDigestTest, SeesEveryFlippedBit) {
  auto tensor = test::make_tensors(3)[0];
  const Box whole = Box::whole(tensor.shape);
  const uint64_t before = digest_of(tensor, whole);
  for (size_t bit = 0; bit < tensor.data.size() * 8; ++bit) {
    tensor.data[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
    ASSERT_NE(digest_of(tensor, whole), before) << "bit " << bit;
    tensor.data[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
  }
}

TEST(PositionalDigestTest, SeesTwoElementsChangePlaces) {
  const Shape shape{4};
  const std::vector<int32_t> straight{1, 2, 3, 4};
  const std::vector<int32_t> swapped{1, 3, 2, 4};
  EXPECT_NE(positional_digest(DType::kI32, shape, Box::whole(shape),
                              reinterpret_cast<const std::byte*>(straight.data())),
            positional_digest(DType::kI32, shape, Box::whole(shape),
                              reinterpret_cast<const std::byte*>(swapped.data())));
}

TEST(PositionalHasherTest, PartsGiveTheDigestOfTheWhole) {
  const auto tensor = test::make_tensors(4)[0];  // [7, 5], 2 bytes
  const Box box{{1, 1}, {5, 3}};
  const auto data = test::cut(tensor, box);
  detail::PositionalHasher hasher(tensor.dtype, tensor.shape, box);
  const std::span<const std::byte> bytes(data);
  hasher.add(bytes.first(2));
  hasher.add(bytes.subspan(2, 14));
  hasher.add(bytes.subspan(16));
  EXPECT_EQ(hasher.digest(), reference(tensor, box));
}

}  // namespace
}  // namespace chiliad::checkpoint
