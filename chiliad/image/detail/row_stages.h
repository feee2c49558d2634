#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "chiliad/image/detail/resample.h"
#include "chiliad/image/fit.h"

namespace chiliad::image::detail {

// Rows that a stage may write before it says that they are filled.
constexpr int kRowsAhead = 4;

/// Takes rows of RGB pixels, the first one first. Either the caller has them somewhere (`push`), or it writes
/// them where `room` says and then calls `filled`.
class RowStage {
 public:
  RowStage() = default;
  RowStage(const RowStage&) = delete;
  RowStage& operator=(const RowStage&) = delete;
  virtual ~RowStage() = default;

  /// Room for the row that comes `ahead` (below kRowsAhead) rows after the next; valid until that one is
  /// filled.
  [[nodiscard]] virtual uint8_t* room(int ahead) = 0;
  /// The next row is where room(0) said.
  virtual void filled() = 0;
  virtual void push(const uint8_t* rgb) = 0;
  /// Up to kBlockRows rows; quickest if all pushes but the last are of just so many.
  virtual void push(const uint8_t* const* rows, int count) {
    for (int i = 0; i < count; ++i) push(rows[i]);
  }
  /// No more rows come: what is kept back goes on.
  virtual void finish() = 0;
};

/// The end: rows into [height, width, 3], mirrored if wanted.
class SlotStage final : public RowStage {
 public:
  SlotStage(std::span<std::byte> slot, int32_t width, bool mirrored);
  uint8_t* room(int ahead) override { return next_ + 3 * width_ * ahead; }
  void filled() override;
  using RowStage::push;
  void push(const uint8_t* rgb) override;
  void finish() override {}

 private:
  uint8_t* next_;
  const int64_t width_;
  const bool mirrored_;
};

/// Resamples rows to the outputs of an axis, kBlockRows at a time.
class AcrossStage final : public RowStage {
 public:
  /// Pixels of a row are counted from `axis.first.front()` on. `next` outlives the stage.
  AcrossStage(const AxisWeights& axis, RowStage& next);
  uint8_t* room(int ahead) override { return row_of(num_rows_ + ahead); }
  void filled() override;
  using RowStage::push;
  void push(const uint8_t* rgb) override;
  void push(const uint8_t* const* rows, int count) override;
  void finish() override;

 private:
  [[nodiscard]] uint8_t* row_of(int row) { return rows_.data() + int64_t{3} * num_pixels_ * row; }
  void pass_on(const uint8_t* const* rows, int count);
  void pass_kept_on();

  TapPairs pairs_;
  RowStage& next_;
  const int32_t num_pixels_;
  const int32_t num_outputs_;
  int num_rows_ = 0;  // that are kept in rows_
  std::vector<uint8_t> rows_;
  std::vector<int16_t> memory_;
  int16_t* block_;
  std::vector<uint8_t> resampled_;
};

/// Resamples columns to the outputs of an axis; keeps the rows that the next output needs and no more.
class DownStage final : public RowStage {
 public:
  /// Rows are counted from `axis.first.front()` on. `next` outlives the stage.
  DownStage(AxisWeights axis, int32_t width, RowStage& next);
  uint8_t* room(int ahead) override { return ring_row(num_rows_ + ahead); }
  void filled() override;
  using RowStage::push;
  void push(const uint8_t* rgb) override;
  void finish() override { next_.finish(); }

 private:
  [[nodiscard]] uint8_t* ring_row(int32_t row) { return ring_.data() + stride_ * (row % capacity_); }

  AxisWeights axis_;
  TapPairs pairs_;
  RowStage& next_;
  const int64_t row_bytes_;
  const int64_t stride_;
  const int32_t capacity_;
  int32_t num_rows_ = 0;
  int32_t output_ = 0;
  std::vector<uint8_t> ring_;
  std::vector<const uint8_t*> rows_;
};

/// A rectangle of whole source pixels.
struct Window {
  int32_t left = 0;
  int32_t top = 0;
  int32_t width = 0;
  int32_t height = 0;
};

/// The stages that make `fit` of a picture of source_width x source_height pixels, which `box` says what part
/// of to show, and the pixels of it that they need.
class ResizePipeline {
 public:
  /// slot: uint8 [fit.height, fit.width, 3].
  ResizePipeline(int32_t source_width, int32_t source_height, const SourceBox& box, const Fit& fit,
                 Filter filter, bool mirrored, std::span<std::byte> slot);

  [[nodiscard]] const Window& window() const { return window_; }
  /// Where the rows of the window go.
  [[nodiscard]] RowStage& first() { return *first_; }

 private:
  Window window_;
  SlotStage slot_;
  std::unique_ptr<RowStage> last_resize_;   // before the slot, or null
  std::unique_ptr<RowStage> first_resize_;  // before last_resize_, or null
  RowStage* first_ = nullptr;
};

/// Pushes the window's part of a picture that lies in memory.
void push_window(const HostArray& picture, ResizePipeline& pipeline);

}  // namespace chiliad::image::detail
