#include "chiliad/checkpoint/detail/positional.h"

#include <algorithm>
#include <cstring>

#include "chiliad/base/error.h"

namespace chiliad::checkpoint::detail {
namespace {

// docs/formats/snapshot.md: part of the stored format.
constexpr uint64_t kIndexFactor = 0x9E3779B97F4A7C15ULL;
constexpr uint64_t kBitsFactor = 0xC2B2AE3D27D4EB4FULL;
constexpr uint64_t kMixFactor = 0x165667B19E3779F9ULL;

constexpr uint64_t mix(uint64_t position, uint64_t bits) {
  uint64_t z = position + bits * kBitsFactor;
  z ^= z >> 32;
  z *= kMixFactor;
  return z ^ (z >> 29);
}

/// Four sums that do not wait for each other.
template <typename T>
uint64_t sum_run(int64_t first, int64_t count, const std::byte* data) {
  uint64_t position = (static_cast<uint64_t>(first) + 1) * kIndexFactor;
  uint64_t sums[4] = {0, 0, 0, 0};
  int64_t i = 0;
  for (; i + 4 <= count; i += 4) {
    T bits[4];
    std::memcpy(bits, data + static_cast<size_t>(i) * sizeof(T), sizeof(bits));
    for (uint64_t lane = 0; lane < 4; ++lane) sums[lane] += mix(position + lane * kIndexFactor, bits[lane]);
    position += 4 * kIndexFactor;
  }
  for (; i < count; ++i, position += kIndexFactor) {
    T bits = 0;
    std::memcpy(&bits, data + static_cast<size_t>(i) * sizeof(T), sizeof(T));
    sums[0] += mix(position, bits);
  }
  return sums[0] + sums[1] + sums[2] + sums[3];
}

uint64_t sum_run(int64_t element_bytes, int64_t first, int64_t count, const std::byte* data) {
  switch (element_bytes) {
    case 1:
      return sum_run<uint8_t>(first, count, data);
    case 2:
      return sum_run<uint16_t>(first, count, data);
    case 4:
      return sum_run<uint32_t>(first, count, data);
    default:
      return sum_run<uint64_t>(first, count, data);
  }
}

}  // namespace

RunWalker::RunWalker(const Shape& shape, const Box& box) {
  CHILIAD_CHECK(box.inside(shape), "box {} outside of {}", box.to_string(), shape.to_string());
  if (box.count() == 0) return;  // the strides of an empty tensor may not fit
  int axis = shape.rank();
  int64_t stride = 1;
  run_count_ = 1;
  bool contiguous = true;
  for (; axis > 0 && contiguous; --axis) {
    run_count_ *= box.size[axis - 1];
    first_ += box.offset[axis - 1] * stride;
    stride *= shape[axis - 1];
    contiguous = box.size[axis - 1] == shape[axis - 1];
  }
  runs_left_ = 1;
  for (; axis > 0; --axis) {
    extents_.push_back(box.size[axis - 1]);
    strides_.push_back(stride);
    position_.push_back(0);
    first_ += box.offset[axis - 1] * stride;
    runs_left_ *= box.size[axis - 1];
    stride *= shape[axis - 1];
  }
}

Run RunWalker::next() {
  if (runs_left_ == 0) return {};
  --runs_left_;
  const Run run{first_, run_count_};
  for (size_t axis = 0; axis < extents_.size(); ++axis) {
    first_ += strides_[axis];
    if (++position_[axis] < extents_[axis]) break;
    first_ -= strides_[axis] * extents_[axis];
    position_[axis] = 0;
  }
  return run;
}

PositionalHasher::PositionalHasher(DType dtype, const Shape& shape, const Box& box)
    : walker_(shape, box), element_bytes_(dtype_bytes(dtype)) {}

void PositionalHasher::add(std::span<const std::byte> bytes) {
  CHILIAD_CHECK_EQ(static_cast<int64_t>(bytes.size()) % element_bytes_, 0);
  int64_t left = static_cast<int64_t>(bytes.size()) / element_bytes_;
  const std::byte* data = bytes.data();
  while (left > 0) {
    if (run_.count == 0) run_ = walker_.next();
    CHILIAD_CHECK_GT(run_.count, 0);
    const int64_t count = std::min(left, run_.count);
    sum_ += sum_run(element_bytes_, run_.first, count, data);
    run_.first += count;
    run_.count -= count;
    left -= count;
    data += count * element_bytes_;
  }
}

}  // namespace chiliad::checkpoint::detail
