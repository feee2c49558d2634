#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace chiliad::test {

/// Path of picture `i` of a set, without the folder.
[[nodiscard]] std::string picture_name(int64_t i);

/// Writes `count` small PNG pictures of several aspect ratios, each with an English caption of its own
/// length, into `folder`. Pictures are noise over slopes, so that no two have the same gradient.
void write_pictures(const std::filesystem::path& folder, int64_t count);

/// Indexes `folder` into `out`, with blocks of a few pictures.
void index_pictures(const std::filesystem::path& folder, const std::filesystem::path& out);

/// Flips one bit in the middle of a file; its size and time stay.
void flip_bit(const std::filesystem::path& path);

}  // namespace chiliad::test
