#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "chiliad/base/dtype.h"
#include "chiliad/base/error.h"
#include "chiliad/base/shape.h"

namespace chiliad {

/// A contiguous row-major array in host memory, 64-byte aligned when it owns its memory. Move-only.
/// A view borrows memory that must outlive it (see `view`).
class HostArray {
 public:
  HostArray() = default;
  /// Owns zeroed memory.
  HostArray(DType dtype, Shape shape);
  /// Borrows `data` of at least the array's bytes.
  [[nodiscard]] static HostArray view(DType dtype, Shape shape, std::byte* data);

  HostArray(HostArray&&) noexcept = default;
  HostArray& operator=(HostArray&&) noexcept = default;
  HostArray(const HostArray&) = delete;
  HostArray& operator=(const HostArray&) = delete;
  ~HostArray() = default;

  [[nodiscard]] DType dtype() const { return dtype_; }
  [[nodiscard]] const Shape& shape() const { return shape_; }
  [[nodiscard]] int64_t count() const { return count_; }
  [[nodiscard]] int64_t num_bytes() const { return count_ * dtype_bytes(dtype_); }
  [[nodiscard]] std::byte* data() { return data_; }
  [[nodiscard]] const std::byte* data() const { return data_; }
  [[nodiscard]] std::span<const std::byte> bytes() const { return {data_, static_cast<size_t>(num_bytes())}; }
  [[nodiscard]] std::span<std::byte> bytes() { return {data_, static_cast<size_t>(num_bytes())}; }

  /// Elements as T; sizeof(T) must be the element size.
  template <typename T>
  [[nodiscard]] std::span<T> as() {
    CHILIAD_CHECK_EQ(static_cast<int64_t>(sizeof(T)), dtype_bytes(dtype_));
    return {reinterpret_cast<T*>(data_), static_cast<size_t>(count_)};
  }
  template <typename T>
  [[nodiscard]] std::span<const T> as() const {
    CHILIAD_CHECK_EQ(static_cast<int64_t>(sizeof(T)), dtype_bytes(dtype_));
    return {reinterpret_cast<const T*>(data_), static_cast<size_t>(count_)};
  }

  [[nodiscard]] HostArray clone() const;

 private:
  struct AlignedDelete {
    void operator()(std::byte* memory) const { ::operator delete[](memory, std::align_val_t{64}); }
  };

  DType dtype_ = DType::kU8;
  Shape shape_{0};
  int64_t count_ = 0;
  std::unique_ptr<std::byte[], AlignedDelete> owned_;
  std::byte* data_ = nullptr;
};

}  // namespace chiliad
