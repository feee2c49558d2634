#include "chiliad/ops/remake.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <utility>

#include "chiliad/base/error.h"

namespace chiliad::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

thread_local bool remakes = false;

/// A value whose memory is away until backward asks for it. What autograd saved of it has the same storage.
class Remade final : public torch::CustomClassHolder {
 public:
  Remade(Make make, const at::Tensor& value)
      : make_(std::move(make)), storage_(value.storage()), device_(value.device()) {
    storage_.unsafeGetStorageImpl()->set_data_ptr_noswap(at::DataPtr(nullptr, device_));
  }

  void fill() {
    if (!make_) return;
    const at::NoGradGuard no_grad;
    const at::Tensor again = make_();
    CHILIAD_CHECK_EQ(again.storage().nbytes(), storage_.nbytes());
    CHILIAD_CHECK(again.storage().data() != nullptr, "a value made again has memory that is not its own");
    storage_.unsafeGetStorageImpl()->set_data_ptr_noswap(
        std::move(again.storage().unsafeGetStorageImpl()->mutable_data_ptr()));
    make_ = {};
  }

 private:
  Make make_;
  at::Storage storage_;
  at::Device device_;
};

/// What was computed from the value: backward comes here first.
struct BeforeUse : public torch::autograd::Function<BeforeUse> {
  static Variable forward(AutogradContext* context, const Variable& result,
                          const c10::intrusive_ptr<Remade>& value) {
    context->saved_data["value"] = c10::IValue::make_capsule(value);
    return result.view_as(result);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    c10::static_intrusive_pointer_cast<Remade>(context->saved_data["value"].toCapsule())->fill();
    context->saved_data.clear();  // the node may live on
    return {gradients[0], {}};
  }
};

}  // namespace

RemakeGuard::RemakeGuard(bool on) : before_(std::exchange(remakes, on)) {}

RemakeGuard::~RemakeGuard() {
  remakes = before_;
}

std::vector<at::Tensor> remade_for_all(const Make& make,
                                       const std::function<std::vector<at::Tensor>(const at::Tensor&)>& use) {
  const at::Tensor value = make();
  auto results = use(value);
  if (!remakes || !at::GradMode::is_enabled() || !value.requires_grad()) return results;
  const auto away = c10::make_intrusive<Remade>(make, value);
  for (at::Tensor& result : results) result = BeforeUse::apply(result, away);
  return results;
}

at::Tensor remade(const Make& make, const std::function<at::Tensor(const at::Tensor&)>& use) {
  return remade_for_all(make,
                        [&](const at::Tensor& value) { return std::vector<at::Tensor>{use(value)}; })[0];
}

}  // namespace chiliad::ops
