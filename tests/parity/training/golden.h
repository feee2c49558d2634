#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace chiliad::test {

/// One folder of the golden kit, its tensors on the host.
struct GoldenCase {
  std::string folder;
  std::map<std::string, at::Tensor> inputs;  ///< empty where the folder has none
  std::map<std::string, at::Tensor> expected;
  std::map<std::string, at::Tensor> weights;  ///< empty where the folder has no model
  std::shared_ptr<nlohmann::json>
      options;  ///< shared by copies of the case; options.json,
                ///< scheduler_config.json or config.json; null where the folder has none

  /// How many entries `<prefix>0`, `<prefix>1`, ... `expected` has.
  [[nodiscard]] int64_t count(const std::string& prefix) const;
};

/// The tensors of a .safetensors file of the kit.
[[nodiscard]] std::map<std::string, at::Tensor> read_golden_tensors(const std::filesystem::path& path);

/// Throws if the folder or its expected values are missing.
[[nodiscard]] GoldenCase read_golden(const std::string& folder);

/// Folders of the kit below `family` whose names begin with `prefix`, sorted.
[[nodiscard]] std::vector<std::string> golden_folders(const std::string& family, const std::string& prefix);

/// Largest difference, divided by the largest absolute value of `expected`; infinite where shapes differ or a
/// value is not a number.
[[nodiscard]] double relative_difference(const at::Tensor& actual, const at::Tensor& expected);
[[nodiscard]] double relative_difference(const std::vector<double>& actual, const at::Tensor& expected);

}  // namespace chiliad::test
