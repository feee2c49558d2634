#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace chiliad::ops {

/// While one lives and is on, operators of this thread keep less for backward (selective recomputation): see
/// remade.
class RemakeGuard {
 public:
  explicit RemakeGuard(bool on);
  ~RemakeGuard();
  RemakeGuard(const RemakeGuard&) = delete;
  RemakeGuard& operator=(const RemakeGuard&) = delete;

 private:
  bool before_;
};

using Make = std::function<at::Tensor()>;

/// use(make()). Under a RemakeGuard, where a graph is built, the memory of the value goes after `use`, and
/// backward makes it again when a gradient comes to what `use` returned: for values that are large and cheap
/// to make, and are used nowhere else. `make` holds by value what it needs, gives dense memory of its own,
/// and the same bits each time; autograd itself must not keep its value.
[[nodiscard]] at::Tensor remade(const Make& make, const std::function<at::Tensor(const at::Tensor&)>& use);
/// The same for several results.
[[nodiscard]] std::vector<at::Tensor> remade_for_all(
    const Make& make, const std::function<std::vector<at::Tensor>(const at::Tensor&)>& use);

}  // namespace chiliad::ops
