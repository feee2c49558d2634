#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "chiliad/spec/options/data.h"

namespace chiliad::spec {

/// A shape of a published table of buckets, in pixels.
struct TableShape {
  int32_t width = 0;
  int32_t height = 0;
  double ratio = 0.0;  ///< height / width, rounded as its authors do: they compare pictures with this
};

/// What data.buckets may be.
[[nodiscard]] const std::vector<std::string>& bucket_table_names();

/// Whether the shapes of `name` are made from data.resolution and data.bucket_*: auto and kohya.
[[nodiscard]] bool is_generated(std::string_view name);

/// The shapes of a table that is not generated, in the order of its authors. Sources: NovelAI's bucket
/// manager (512 x 768, sides of 256 to 1024 in steps of 64); PixArt-sigma's ASPECT_RATIO_*; Open-Sora's.
[[nodiscard]] std::vector<TableShape> table_shapes(std::string_view name);

/// The longest side of a picture, of all stages.
[[nodiscard]] int64_t longest_side(const DataOptions& data);

}  // namespace chiliad::spec
