#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace chiliad::observe {

// The records of TensorBoard's event files, byte for byte (docs/formats/tensorboard.md). An event is a
// protobuf message; a record is an event in its frame.

/// CRC-32C (Castagnoli).
[[nodiscard]] uint32_t crc32c(std::string_view bytes);

/// A curve's name and its value at a step.
struct Scalar {
  std::string tag;
  double value = 0.0;
};

/// A PNG file shown at a step.
struct Picture {
  std::string tag;
  std::span<const std::byte> png;
};

/// The first event of a file. wall: seconds since 1970.
[[nodiscard]] std::string version_event(double wall);
/// From here on the values of `step` and of all later steps that came before are void.
[[nodiscard]] std::string restart_event(double wall, int64_t step);
[[nodiscard]] std::string scalars_event(double wall, int64_t step, const std::vector<Scalar>& scalars);
[[nodiscard]] std::string picture_event(double wall, int64_t step, const Picture& picture);

/// Length, masked checksum of the length, event, masked checksum of the event.
[[nodiscard]] std::string frame_record(std::string_view event);

}  // namespace chiliad::observe
