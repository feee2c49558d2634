#include "chiliad/image/detail/row_sink.h"

#include <cstring>

namespace chiliad::image::detail {

RowSink::RowSink(int32_t width, int32_t height, uint8_t orientation)
    : picture_(DType::kU8, orientation >= 5 ? Shape{width, height, 3} : Shape{height, width, 3}),
      pixels_(picture_.as<uint8_t>().data()) {
  const bool transposed = orientation >= 5;
  const bool mirror_x = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool mirror_y = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  stride_x_ = transposed ? height : 1;
  stride_y_ = transposed ? 1 : width;
  if (mirror_x) {
    origin_ += stride_x_ * (width - 1);
    stride_x_ = -stride_x_;
  }
  if (mirror_y) {
    origin_ += stride_y_ * (height - 1);
    stride_y_ = -stride_y_;
  }
}

void RowSink::write(int32_t y, const uint8_t* rgb, int32_t count, int32_t first_x, int32_t step_x) {
  uint8_t* to = pixels_ + 3 * (origin_ + stride_y_ * y + stride_x_ * first_x);
  const int64_t step = 3 * stride_x_ * step_x;
  if (step == 3) {
    std::memcpy(to, rgb, 3 * static_cast<size_t>(count));
    return;
  }
  for (int32_t i = 0; i < count; ++i, rgb += 3) {
    uint8_t* pixel = to + step * i;
    pixel[0] = rgb[0];
    pixel[1] = rgb[1];
    pixel[2] = rgb[2];
  }
}

void RowSink::fill(const std::array<uint8_t, 3>& color) {
  const auto samples = picture_.as<uint8_t>();
  for (size_t i = 0; i < samples.size(); ++i) samples[i] = color[i % 3];
}

uint8_t* PictureStage::room(int ahead) {
  rows_.resize(size_t{3} * static_cast<size_t>(width_) * kRowsAhead);
  return rows_.data() + int64_t{3} * width_ * ((next_row_ + ahead) % kRowsAhead);
}

void PictureStage::filled() {
  push(room(0));
}

void PictureStage::push(const uint8_t* rgb) {
  if (!sink_) sink_.emplace(width_, height_, orientation_);
  sink_->write(next_row_++, rgb, width_);
}

}  // namespace chiliad::image::detail
