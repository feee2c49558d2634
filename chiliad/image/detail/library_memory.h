#pragma once

#include <cstddef>
#include <cstdlib>
#include <vector>

namespace chiliad::image::detail {

/// Frees what the libraries of pictures allocate for their caller, by malloc.
struct FreeMemory {
  void operator()(void* memory) const { std::free(memory); }
};

[[nodiscard]] inline std::vector<std::byte> copy_of(const void* memory, size_t size) {
  const auto* first = static_cast<const std::byte*>(memory);
  return {first, first + size};
}

}  // namespace chiliad::image::detail
