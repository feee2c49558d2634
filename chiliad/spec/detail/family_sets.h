#pragma once

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "chiliad/spec/options/model.h"

namespace chiliad::spec::detail {

[[nodiscard]] inline bool is_any(const ModelOptions& model,
                                 std::initializer_list<std::string_view> families) {
  return std::find(families.begin(), families.end(), model.family) != families.end();
}
[[nodiscard]] inline bool is_llama3(const ModelOptions& model) {
  return model.rope_scaling == "llama3";
}
[[nodiscard]] inline bool is_yarn(const ModelOptions& model) {
  return model.rope_scaling == "yarn";
}
/// Scalings of rotary positions that know the context of the training before.
[[nodiscard]] inline bool has_original_context(const ModelOptions& model) {
  return model.rope_scaling == "dynamic" || is_llama3(model) || is_yarn(model);
}

}  // namespace chiliad::spec::detail
