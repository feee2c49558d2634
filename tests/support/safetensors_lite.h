#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace chiliad::test {

/// A tensor as a golden file holds it.
struct LiteTensor {
  std::string dtype;  ///< as in the header: "U8", "F32", ...
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;
};

/// All tensors of a .safetensors file. For golden files only: independent of the reader under test, and
/// trusting. Throws std::runtime_error if the file is missing or ends early.
[[nodiscard]] std::map<std::string, LiteTensor> read_safetensors_lite(const std::filesystem::path& path);

/// A .npy file of bytes ("|u1", C order). Throws std::runtime_error for anything else.
[[nodiscard]] LiteTensor read_npy_lite(const std::filesystem::path& path);

/// All bytes of a file. Throws std::runtime_error if it cannot be read.
[[nodiscard]] std::vector<std::byte> read_bytes_lite(const std::filesystem::path& path);

}  // namespace chiliad::test
