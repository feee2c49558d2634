#include "chiliad/model/load_weights.h"

#include <ATen/ATen.h>

#include <utility>

#include "chiliad/base/error.h"

namespace chiliad::model {
namespace {

/// Of the types that match_weights lets pass.
at::ScalarType float_type(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return at::kDouble;
    case DType::kF16:
      return at::kHalf;
    case DType::kBF16:
      return at::kBFloat16;
    default:
      return at::kFloat;
  }
}

void check_numbers(const weights::WeightSource& source, const std::string& key, const at::Tensor& values) {
  if (at::isfinite(values).all().item<bool>()) return;
  throw CorruptData(
      source.path().string(),
      fmt::format("tensor '{}' has values that are NaN or infinite. Fetch the file again, or take "
                  "weights of an earlier step",
                  key));
}

/// Part `part` of the tensor `key`.
at::Tensor read_tensor(const weights::WeightSource& source, const std::string& key, weights::KeyPart part,
                       const Shape& shape, at::ScalarType type) {
  const weights::TensorEntry* entry = source.find(key);
  CHILIAD_CHECK(entry != nullptr);
  std::vector<int64_t> sizes = shape.sizes();
  if (part.count > 1) sizes[0] *= part.count;
  const at::Tensor raw = at::empty(sizes, at::TensorOptions(float_type(entry->dtype)));
  auto* bytes = static_cast<std::byte*>(raw.mutable_data_ptr());
  source.read(key, {bytes, static_cast<size_t>(entry->num_bytes())});
  check_numbers(source, key, raw);
  if (part.count == 1) return raw.to(type);
  return raw.narrow(0, part.index * shape[0], shape[0]).to(type, false, true);  // a copy, not a view
}

}  // namespace

WeightReader::WeightReader(const spec::LayerTable& table, const weights::WeightSource& source,
                           const weights::KeyTable& keys)
    : source_(source), match_(weights::match_weights(table, source, keys)) {}

at::Tensor WeightReader::read(const spec::ParamDecl& param, at::ScalarType type) const {
  const auto part = match_.part_of.find(param.name);
  return read_tensor(source_, match_.key_of.at(param.name),
                     part == match_.part_of.end() ? weights::KeyPart() : part->second, param.shape, type);
}

std::vector<std::vector<at::Tensor>> load_weights(const spec::LayerTable& table,
                                                  const weights::WeightSource& source,
                                                  const weights::KeyTable& keys, at::ScalarType type) {
  CHILIAD_CHECK(at::isFloatingType(type));
  const WeightReader reader(table, source, keys);
  std::vector<std::vector<at::Tensor>> layers;
  for (const auto& layer : table.layers) {
    auto& params = layers.emplace_back();
    for (const auto& param : layer.params) params.push_back(reader.read(param, type));
  }
  return layers;
}

std::vector<std::vector<at::Tensor>> load_weights(const spec::LayerTable& table,
                                                  const std::filesystem::path& path,
                                                  const weights::KeyTable& keys, at::ScalarType type) {
  return load_weights(table, weights::WeightSource::open(path), keys, type);
}

}  // namespace chiliad::model
