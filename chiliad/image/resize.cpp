#include "chiliad/image/resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "chiliad/image/detail/resample.h"

namespace chiliad::image {
namespace {

struct Size {
  int32_t width = 0;
  int32_t height = 0;
};

Size size_of(const HostArray& picture) {
  const Shape& shape = picture.shape();
  CHILIAD_CHECK(
      picture.dtype() == DType::kU8 && shape.rank() == 3 && shape[2] == 3 && shape[0] > 0 && shape[1] > 0,
      "expected uint8 [H, W, 3], got {}", shape.to_string());
  CHILIAD_CHECK(shape[0] <= INT32_MAX && shape[1] <= INT32_MAX, "sides beyond 31 bits: {}",
                shape.to_string());
  return {static_cast<int32_t>(shape[1]), static_cast<int32_t>(shape[0])};
}

HostArray new_picture(int32_t width, int32_t height) {
  return {DType::kU8, Shape{height, width, 3}};
}

/// Rows [first_row, first_row + num_rows) of `picture`, each resampled to the axis.
HostArray resample_rows(const HostArray& picture, int32_t first_row, int32_t num_rows,
                        const detail::AxisWeights& axis) {
  const Size size = size_of(picture);
  HostArray result = new_picture(axis.num_outputs(), num_rows);
  const int64_t from_stride = int64_t{size.width} * 3;
  const int64_t to_stride = int64_t{axis.num_outputs()} * 3;
  const uint8_t* from = picture.as<uint8_t>().data() + from_stride * first_row;
  uint8_t* to = result.as<uint8_t>().data();
  std::vector<uint8_t> last_row;
  for (int32_t y = 0; y < num_rows; ++y, from += from_stride, to += to_stride) {
    if (first_row + y + 1 == size.height) {  // pixels are read four bytes at a time
      last_row.assign(from, from + from_stride);
      last_row.push_back(0);
    }
    detail::resample_row(last_row.empty() ? from : last_row.data(), to, axis);
  }
  return result;
}

HostArray resample_columns(const HostArray& picture, const detail::AxisWeights& axis) {
  const Size size = size_of(picture);
  HostArray result = new_picture(size.width, axis.num_outputs());
  const int64_t stride = int64_t{size.width} * 3;
  const uint8_t* from = picture.as<uint8_t>().data();
  uint8_t* to = result.as<uint8_t>().data();
  for (int32_t y = 0; y < axis.num_outputs(); ++y) {
    detail::resample_column(from, stride, to + stride * y, stride, axis, y);
  }
  return result;
}

}  // namespace

HostArray resize(const HostArray& picture, int32_t width, int32_t height, Filter filter) {
  const Size size = size_of(picture);
  return resize(picture, width, height, filter,
                {0.0, 0.0, static_cast<double>(size.width), static_cast<double>(size.height)});
}

HostArray resize(const HostArray& picture, int32_t width, int32_t height, Filter filter,
                 const SourceBox& box) {
  const Size size = size_of(picture);
  CHILIAD_CHECK(width > 0 && height > 0, "empty size {} x {}", width, height);
  const auto left = static_cast<float>(box.left);
  const auto top = static_cast<float>(box.top);
  const auto right = static_cast<float>(box.right);
  const auto bottom = static_cast<float>(box.bottom);
  CHILIAD_CHECK(left >= 0 && top >= 0 && right <= static_cast<float>(size.width) &&
                    bottom <= static_cast<float>(size.height) && left < right && top < bottom,
                "box [{}, {}, {}, {}] outside of {} x {}", left, top, right, bottom, size.width, size.height);
  const bool across = width != size.width || left != 0 || right != static_cast<float>(width);
  const bool down = height != size.height || top != 0 || bottom != static_cast<float>(height);
  if (!across && !down) return picture.clone();
  if (!down)
    return resample_rows(picture, 0, size.height,
                         detail::axis_weights(size.width, left, right, width, filter));
  auto rows = detail::axis_weights(size.height, top, bottom, height, filter);
  if (!across) return resample_columns(picture, rows);
  const auto columns = detail::axis_weights(size.width, left, right, width, filter);
  const int32_t first_row = rows.first.front();
  const int32_t num_rows = rows.first.back() + rows.count.back() - first_row;
  for (int32_t& row : rows.first)
    row -= first_row;  // rows that no output needs are left out of the first pass
  return resample_columns(resample_rows(picture, first_row, num_rows, columns), rows);
}

HostArray crop(const HostArray& picture, int32_t left, int32_t top, int32_t width, int32_t height) {
  const Size size = size_of(picture);
  CHILIAD_CHECK(left >= 0 && top >= 0 && width > 0 && height > 0 && width <= size.width - left &&
                    height <= size.height - top,
                "crop {} x {} at ({}, {}) outside of {} x {}", width, height, left, top, size.width,
                size.height);
  HostArray result = new_picture(width, height);
  const std::byte* from = picture.data() + (int64_t{top} * size.width + left) * 3;
  for (int32_t y = 0; y < height; ++y) {
    std::memcpy(result.data() + int64_t{y} * width * 3, from + int64_t{y} * size.width * 3,
                static_cast<size_t>(width) * 3);
  }
  return result;
}

HostArray flip_horizontal(const HostArray& picture) {
  const Size size = size_of(picture);
  HostArray result = new_picture(size.width, size.height);
  const std::byte* from = picture.data();
  for (int32_t y = 0; y < size.height; ++y) {
    std::byte* to = result.data() + (int64_t{y} + 1) * size.width * 3;
    for (int32_t x = 0; x < size.width; ++x, from += 3) std::memcpy(to -= 3, from, 3);
  }
  return result;
}

HostArray cover(const HostArray& picture, int32_t width, int32_t height, Filter filter, double crop_x,
                double crop_y) {
  const Size size = size_of(picture);
  CHILIAD_CHECK(width > 0 && height > 0, "empty size {} x {}", width, height);
  CHILIAD_CHECK(crop_x >= 0 && crop_x <= 1 && crop_y >= 0 && crop_y <= 1, "crop place ({}, {})", crop_x,
                crop_y);
  const bool wider = static_cast<double>(size.width) / size.height > static_cast<double>(width) / height;
  const double scale =
      wider ? static_cast<double>(height) / size.height : static_cast<double>(width) / size.width;
  // Rounding may leave a side one short where width / scale is inexact.
  const int32_t wide = std::max(width, static_cast<int32_t>(size.width * scale + 0.5));
  const int32_t tall = std::max(height, static_cast<int32_t>(size.height * scale + 0.5));
  const auto left = static_cast<int32_t>(std::floor((wide - width) * crop_x));
  const auto top = static_cast<int32_t>(std::floor((tall - height) * crop_y));
  return crop(resize(picture, wide, tall, filter), left, top, width, height);
}

}  // namespace chiliad::image
