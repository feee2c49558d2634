#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "chiliad/base/host_array.h"
#include "chiliad/image/detail/row_stages.h"

namespace chiliad::image::detail {

/// Takes rows in the order of the file and puts them where the EXIF orientation wants them, so that no second
/// picture is needed. A turned or mirrored pixel's place is affine in its stored x and y.
class RowSink {
 public:
  /// `width` and `height` as stored, before orientation (1..8).
  RowSink(int32_t width, int32_t height, uint8_t orientation);

  /// Puts `count` RGB pixels at stored positions x = first_x, first_x + step_x, ... of row y.
  void write(int32_t y, const uint8_t* rgb, int32_t count, int32_t first_x = 0, int32_t step_x = 1);
  /// Every pixel that is not written has this colour; to be called before `write`.
  void fill(const std::array<uint8_t, 3>& color);
  /// The picture: uint8 [H, W, 3] after orientation.
  [[nodiscard]] HostArray take() { return std::move(picture_); }

 private:
  HostArray picture_;
  uint8_t* pixels_;
  int64_t origin_ = 0;  // in pixels, as are the strides
  int64_t stride_x_ = 1;
  int64_t stride_y_ = 0;
};

/// A whole picture, allocated when its first row comes.
class PictureStage final : public RowStage {
 public:
  /// As RowSink.
  PictureStage(int32_t width, int32_t height, uint8_t orientation)
      : width_(width), height_(height), orientation_(orientation) {}
  uint8_t* room(int ahead) override;
  void filled() override;
  using RowStage::push;
  void push(const uint8_t* rgb) override;
  void finish() override {}
  [[nodiscard]] bool has_rows() const { return sink_.has_value(); }
  /// To be called once, after the last row; rows that did not come are black.
  [[nodiscard]] HostArray take() { return sink_->take(); }

 private:
  const int32_t width_;
  const int32_t height_;
  const uint8_t orientation_;
  int32_t next_row_ = 0;
  std::optional<RowSink> sink_;
  std::vector<uint8_t> rows_;
};

}  // namespace chiliad::image::detail
