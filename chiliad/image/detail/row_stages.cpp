#include "chiliad/image/detail/row_stages.h"

#include <algorithm>
#include <cstring>

#include "chiliad/base/error.h"

namespace chiliad::image::detail {
namespace {

constexpr int64_t kPixelBytes = 3;
// The pass down reads whole vectors, at most so many bytes.
constexpr int64_t kVectorBytes = 64;
constexpr int kBlockSamples = kBlockRows * kPairSamples;

AxisWeights from_zero(AxisWeights axis) {
  const int32_t first = axis.first.front();
  for (int32_t& sample : axis.first) sample -= first;
  return axis;
}

int16_t* aligned(std::vector<int16_t>& memory) {
  const auto address = reinterpret_cast<uintptr_t>(memory.data());
  return memory.data() + (-address % kVectorBytes) / sizeof(int16_t);
}

/// Which pass comes first changes the rounding of what lies between them. Pillow 13 goes down first where the
/// height loses more than twice as many pixels as the width, and takes the sizes of the whole picture even if
/// there is a box.
bool down_first(int32_t width, int32_t height, const Fit& fit) {
  return fit.full_height < height &&
         int64_t{height} - fit.full_height > 2 * (int64_t{width} - fit.full_width);
}

}  // namespace

SlotStage::SlotStage(std::span<std::byte> slot, int32_t width, bool mirrored)
    : next_(reinterpret_cast<uint8_t*>(slot.data())), width_(width), mirrored_(mirrored) {}

void SlotStage::filled() {
  if (mirrored_) {
    for (int64_t a = 0, b = kPixelBytes * (width_ - 1); a < b; a += kPixelBytes, b -= kPixelBytes)
      std::swap_ranges(next_ + a, next_ + a + kPixelBytes, next_ + b);
  }
  next_ += kPixelBytes * width_;
}

void SlotStage::push(const uint8_t* rgb) {
  std::memcpy(next_, rgb, static_cast<size_t>(kPixelBytes * width_));
  filled();
}

AcrossStage::AcrossStage(const AxisWeights& axis, RowStage& next)
    : pairs_(tap_pairs(from_zero(axis), true)),
      next_(next),
      num_pixels_(axis.end() - axis.first.front()),
      num_outputs_(axis.num_outputs()),
      rows_(static_cast<size_t>(kPixelBytes * num_pixels_ * (kBlockRows + kRowsAhead))),
      // Four pixels are put at a time, and outputs of few taps read on as those of most do.
      memory_(static_cast<size_t>(kBlockSamples) *
                  (static_cast<size_t>(num_pixels_) / 2 + 2 + pairs_.num_pairs) +
              kVectorBytes),
      block_(aligned(memory_)),
      resampled_(static_cast<size_t>(num_outputs_) * kBlockRows * 4) {}

void AcrossStage::filled() {
  if (++num_rows_ == kBlockRows) pass_kept_on();
}

void AcrossStage::push(const uint8_t* rgb) {
  std::memcpy(room(0), rgb, static_cast<size_t>(kPixelBytes * num_pixels_));
  filled();
}

void AcrossStage::push(const uint8_t* const* rows, int count) {
  if (num_rows_ == 0 && count == kBlockRows) {
    pass_on(rows, count);
    return;
  }
  for (int i = 0; i < count; ++i) push(rows[i]);
}

void AcrossStage::finish() {
  if (num_rows_ > 0) pass_kept_on();
  next_.finish();
}

void AcrossStage::pass_kept_on() {
  const uint8_t* rows[kBlockRows];
  for (int i = 0; i < num_rows_; ++i) rows[i] = row_of(i);
  pass_on(rows, num_rows_);
  num_rows_ = 0;
}

void AcrossStage::pass_on(const uint8_t* const* rows, int count) {
  put_in_block(rows, count, num_pixels_, block_);
  resample_block(block_, pairs_, resampled_.data());
  for (int row = 0; row < count; row += kRowsAhead) {
    const int num_taken = std::min(kRowsAhead, count - row);
    uint8_t* taken[kRowsAhead] = {};
    for (int i = 0; i < num_taken; ++i) taken[i] = next_.room(i);
    take_rows(resampled_.data(), num_outputs_, row, taken);
    for (int i = 0; i < num_taken; ++i) next_.filled();
  }
}

DownStage::DownStage(AxisWeights axis, int32_t width, RowStage& next)
    : axis_(from_zero(std::move(axis))),
      pairs_(tap_pairs(axis_, false)),
      next_(next),
      row_bytes_(kPixelBytes * width),
      stride_((row_bytes_ + 2 * kVectorBytes - 1) / kVectorBytes * kVectorBytes),
      capacity_(*std::max_element(axis_.count.begin(), axis_.count.end()) + kRowsAhead - 1),
      ring_(static_cast<size_t>(stride_ * capacity_)),
      rows_(static_cast<size_t>(2 * pairs_.num_pairs)) {}

void DownStage::push(const uint8_t* rgb) {
  std::memcpy(room(0), rgb, static_cast<size_t>(row_bytes_));
  filled();
}

void DownStage::filled() {
  ++num_rows_;
  while (output_ < axis_.num_outputs() && axis_.first[output_] + axis_.count[output_] <= num_rows_) {
    for (size_t k = 0; k < rows_.size(); ++k)
      rows_[k] = ring_row(axis_.first[output_] + std::min(static_cast<int32_t>(k), axis_.count[output_] - 1));
    const size_t at = static_cast<size_t>(output_) * static_cast<size_t>(pairs_.num_pairs);
    resample_down(rows_.data(), row_bytes_, &pairs_.high[at], &pairs_.low[at], pairs_.num_pairs,
                  next_.room(0));
    next_.filled();
    ++output_;
  }
}

ResizePipeline::ResizePipeline(int32_t source_width, int32_t source_height, const SourceBox& box,
                               const Fit& fit, Filter filter, bool mirrored, std::span<std::byte> slot)
    : slot_(slot, fit.width, mirrored), first_(&slot_) {
  const auto left = static_cast<float>(box.left);
  const auto top = static_cast<float>(box.top);
  const auto right = static_cast<float>(box.right);
  const auto bottom = static_cast<float>(box.bottom);
  CHILIAD_CHECK(left >= 0 && top >= 0 && right <= static_cast<float>(source_width) &&
                    bottom <= static_cast<float>(source_height) && left < right && top < bottom,
                "box [{}, {}, {}, {}] outside of {} x {}", left, top, right, bottom, source_width,
                source_height);
  CHILIAD_CHECK_EQ(static_cast<int64_t>(slot.size()), int64_t{3} * fit.width * fit.height);
  window_ = {fit.left, fit.top, fit.width, fit.height};
  const bool across =
      fit.full_width != source_width || left != 0 || right != static_cast<float>(source_width);
  const bool down =
      fit.full_height != source_height || top != 0 || bottom != static_cast<float>(source_height);
  AxisWeights columns;
  AxisWeights rows;
  if (across) {
    columns = axis_weights({source_width, left, right, fit.full_width, fit.left, fit.width}, filter);
    window_.left = columns.first.front();
    window_.width = columns.end() - window_.left;
  }
  if (down) {
    rows = axis_weights({source_height, top, bottom, fit.full_height, fit.top, fit.height}, filter);
    window_.top = rows.first.front();
    window_.height = rows.end() - window_.top;
  }
  const auto add = [&](std::unique_ptr<RowStage> stage, std::unique_ptr<RowStage>& place) {
    place = std::move(stage);
    first_ = place.get();
  };
  if (across && down && down_first(source_width, source_height, fit)) {
    add(std::make_unique<AcrossStage>(columns, *first_), last_resize_);
    add(std::make_unique<DownStage>(std::move(rows), window_.width, *first_), first_resize_);
    return;
  }
  if (down) add(std::make_unique<DownStage>(std::move(rows), fit.width, *first_), last_resize_);
  if (across) add(std::make_unique<AcrossStage>(columns, *first_), first_resize_);
}

void push_window(const HostArray& picture, ResizePipeline& pipeline) {
  const Window& window = pipeline.window();
  const int64_t stride = kPixelBytes * picture.shape()[1];
  const uint8_t* row = picture.as<uint8_t>().data() + stride * window.top + kPixelBytes * window.left;
  for (int32_t y = 0; y < window.height; y += kBlockRows) {
    const uint8_t* rows[kBlockRows];
    const int count = std::min(kBlockRows, window.height - y);
    for (int i = 0; i < count; ++i, row += stride) rows[i] = row;
    pipeline.first().push(rows, count);
  }
  pipeline.first().finish();
}

}  // namespace chiliad::image::detail
