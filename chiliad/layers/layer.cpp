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

int64_t Layer::find_param(const std::string& name) const {
  const size_t prefix = decl_.name.size() + 1;
  for (size_t i = 0; i < decl_.params.size(); ++i) {
    const std::string& full = decl_.params[i].name;
    if (full.size() == prefix + name.size() && full.compare(prefix, name.size(), name) == 0)
      return static_cast<int64_t>(i);
  }
  for (size_t i = 0; i < decl_.params.size(); ++i) {
    if (decl_.params[i].name == name) return static_cast<int64_t>(i);
  }
  return -1;
}

bool Layer::has_param(const std::string& name) const {
  return find_param(name) >= 0;
}

const at::Tensor& Layer::param(const std::string& name) const {
  const int64_t index = find_param(name);
  if (index < 0) throw InternalError(decl_.name, fmt::format("no parameter '{}'", name));
  return params_[static_cast<size_t>(index)];
}

at::Tensor Layer::in_compute_type(const at::Tensor& x) const {
  return x.to(params_.front().scalar_type());
}

at::Tensor Layer::linear(const std::string& name, const at::Tensor& x) const {
  return ops::linear(x, linear_params(name));
}

ops::LinearParams Layer::linear_params(const std::string& name) const {
  return {param(name + ".weight"), has_param(name + ".bias") ? param(name + ".bias") : at::Tensor()};
}

GatheredLinear Layer::gather_linear(const std::string& name, const at::Tensor& x, int64_t length,
                                    bool want_rows) const {
  const at::Tensor bias = has_param(name + ".bias") ? param(name + ".bias") : at::Tensor();
  return layers::gather_linear(ranks_, x, param(name + ".weight"), bias, length, want_rows);
}

at::Tensor Layer::linear_scatter(const std::string& name, const at::Tensor& x) const {
  if (ranks_.size() == 1) return linear(name, x);
  const at::Tensor sum = layers::linear_scatter(ranks_, x, param(name + ".weight"));
  return has_param(name + ".bias") ? sum + param(name + ".bias") : sum;
}

at::Tensor Layer::linear_sum(const std::string& name, const at::Tensor& x) const {
  if (ranks_.size() == 1) return linear(name, x);
  const at::Tensor sum = sum_partial(ranks_, ops::linear(x, {param(name + ".weight"), {}}));
  if (!has_param(name + ".bias")) return sum;
  return sum + param(name + ".bias");
}

}  // namespace chiliad::layers
