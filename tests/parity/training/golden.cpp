#include "tests/parity/training/golden.h"

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>
#include <regex>
#include <stdexcept>
#include <string>

#include "chiliad/base/json_text.h"
#include "tests/support/kits.h"
#include "tests/support/safetensors_lite.h"

namespace chiliad::test {
namespace {

namespace fs = std::filesystem;

at::ScalarType scalar_type(const std::string& dtype) {
  if (dtype == "F32") return at::kFloat;
  if (dtype == "F64") return at::kDouble;
  if (dtype == "I64") return at::kLong;
  throw std::runtime_error("golden tensor of type " + dtype);
}

}  // namespace

std::map<std::string, at::Tensor> read_golden_tensors(const fs::path& path) {
  std::map<std::string, at::Tensor> tensors;
  for (auto& [name, lite] : read_safetensors_lite(path)) {
    auto bytes = lite.bytes;
    tensors[name] =
        at::from_blob(bytes.data(), lite.shape, at::TensorOptions(scalar_type(lite.dtype))).clone();
  }
  return tensors;
}

int64_t GoldenCase::count(const std::string& prefix) const {
  int64_t found = 0;
  while (expected.contains(prefix + std::to_string(found))) ++found;
  return found;
}

namespace {

/// Python writes numbers that JSON does not have; they become null.
std::string without_infinities(std::istream& file) {
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return std::regex_replace(text, std::regex(R"(: -?(Infinity|NaN)\b)"), ": null");
}

}  // namespace

GoldenCase read_golden(const std::string& folder) {
  const fs::path path = golden_kit() / folder;
  GoldenCase golden;
  golden.options = std::make_shared<nlohmann::json>();
  golden.folder = folder;
  if (fs::exists(path / "inputs.safetensors"))
    golden.inputs = read_golden_tensors(path / "inputs.safetensors");
  if (fs::exists(path / "model.safetensors"))
    golden.weights = read_golden_tensors(path / "model.safetensors");
  golden.expected = read_golden_tensors(path / "expected.safetensors");
  for (const char* name : {"options.json", "scheduler_config.json", "config.json"}) {
    std::ifstream file(path / name);
    if (file) *golden.options = parse_json<nlohmann::json>(without_infinities(file));
  }
  return golden;
}

std::vector<std::string> golden_folders(const std::string& family, const std::string& prefix) {
  std::vector<std::string> folders;
  for (const auto& entry : fs::directory_iterator(golden_kit() / family)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_directory() && name.starts_with(prefix)) folders.push_back(family + "/" + name);
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

double relative_difference(const at::Tensor& actual, const at::Tensor& expected) {
  if (actual.sizes() != expected.sizes()) return std::numeric_limits<double>::infinity();
  const at::Tensor wanted = expected.to(at::kDouble);
  const double difference = (actual.detach().to(at::kDouble) - wanted).abs().max().item<double>();
  const double scale = wanted.abs().max().item<double>();
  if (difference == 0.0) return 0.0;
  const double relative = scale > 0.0 ? difference / scale : difference;
  return relative >= 0.0 ? relative : std::numeric_limits<double>::infinity();
}

double relative_difference(const std::vector<double>& actual, const at::Tensor& expected) {
  at::Tensor tensor = at::empty({static_cast<int64_t>(actual.size())}, at::kDouble);
  std::copy(actual.begin(), actual.end(), tensor.mutable_data_ptr<double>());
  return relative_difference(tensor, expected);
}

}  // namespace chiliad::test
