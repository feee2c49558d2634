#include "chiliad/image/resize.h"

#include <cstring>

#include "chiliad/image/detail/row_stages.h"

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

HostArray fit_of(const HostArray& picture, const SourceBox& box, const Fit& fit, Filter filter) {
  const Size size = size_of(picture);
  HostArray result = new_picture(fit.width, fit.height);
  detail::ResizePipeline pipeline(size.width, size.height, box, fit, filter, false, result.bytes());
  detail::push_window(picture, pipeline);
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
  return fit_of(picture, box, stretch_fit(width, height), filter);
}

HostArray resize(const HostArray& picture, const Fit& fit, Filter filter) {
  const Size size = size_of(picture);
  return fit_of(picture, {0.0, 0.0, static_cast<double>(size.width), static_cast<double>(size.height)}, fit,
                filter);
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
  return resize(picture, cover_fit(size.width, size.height, width, height, crop_x, crop_y), filter);
}

}  // namespace chiliad::image
