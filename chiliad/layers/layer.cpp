#include "chiliad/layers/layer.h"

#include <ATen/ATen.h>

#include "chiliad/base/error.h"

namespace chiliad::layers {

void Carry::set(const std::string& name, at::Tensor value) {
  for (auto& [key, tensor] : entries_) {
    if (key == name) {
      tensor = std::move(value);
      return;
    }
  }
  entries_.emplace_back(name, std::move(value));
}

const at::Tensor& Carry::get(const std::string& name) const {
  for (const auto& [key, tensor] : entries_) {
    if (key == name) return tensor;
  }
  throw InternalError("carry", fmt::format("no entry '{}'", name));
}

bool Carry::has(const std::string& name) const {
  for (const auto& entry : entries_) {
    if (entry.first == name) return true;
  }
  return false;
}

void Layer::bind(std::vector<at::Tensor> params) {
  CHILIAD_CHECK_EQ(params.size(), decl_.params.size());
  params_ = std::move(params);
}

const at::Tensor& Layer::param(const std::string& name) const {
  const size_t prefix = decl_.name.size() + 1;
  for (size_t i = 0; i < decl_.params.size(); ++i) {
    const std::string& full = decl_.params[i].name;
    if (full.size() == prefix + name.size() && full.compare(prefix, name.size(), name) == 0)
      return params_[i];
  }
  throw InternalError(decl_.name, fmt::format("no parameter '{}'", name));
}

at::Tensor Layer::linear(const std::string& name, const at::Tensor& x) const {
  return at::linear(x, param(name + ".weight"), param(name + ".bias"));
}

}  // namespace chiliad::layers
