#include "chiliad/ops/linear_cross_entropy.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "chiliad/base/error.h"
#include "chiliad/ops/wide_type.h"

namespace chiliad::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

/// Targets of some tokens as rows of this rank's part of the table.
struct LocalTargets {
  at::Tensor row;         // [c, 1], 0 where the word is elsewhere
  at::Tensor here;        // [c, 1] bool
  at::Tensor supervised;  // [c] bool
};

LocalTargets local_targets(const at::Tensor& targets, int64_t first_word, int64_t num_words) {
  const at::Tensor row = (targets - first_word).unsqueeze(1);
  const at::Tensor supervised = targets.ne(kIgnoredTarget);
  const at::Tensor here = row.ge(0).logical_and_(row.lt(num_words)).logical_and_(supervised.unsqueeze(1));
  return {row.masked_fill(here.logical_not(), 0), here, supervised};
}

/// exp(logit - largest), their sum and the target's logit, over all ranks.
struct Softmax {
  at::Tensor exponentials;  // [c, V], of this rank
  at::Tensor sums;          // [c, 1]
  at::Tensor losses;        // [c], 0 where ignored
};

Softmax softmax_losses(at::Tensor logits, const LocalTargets& targets, const VocabularyRanks* ranks) {
  at::Tensor largest = logits.amax({1}, true);
  if (ranks != nullptr) largest = ranks->largest(largest);
  logits.sub_(largest);
  const at::Tensor at_target = logits.gather(1, targets.row).masked_fill_(targets.here.logical_not(), 0);
  logits.exp_();
  at::Tensor both = at::cat({logits.sum({1}, true), at_target}, 1);  // [c, 2], one exchange
  if (ranks != nullptr) both = ranks->sum(both);
  const at::Tensor sums = both.narrow(1, 0, 1);
  const at::Tensor losses = (sums.log() - both.narrow(1, 1, 1)).squeeze(1);
  return {logits, sums, losses.masked_fill(targets.supervised.logical_not(), 0)};
}

/// The gradient of the logits, in place of the exponentials.
at::Tensor logit_gradients(const Softmax& softmax, const LocalTargets& targets, const at::Tensor& weights) {
  const at::Tensor scale = weights.masked_fill(targets.supervised.logical_not(), 0).unsqueeze(1);  // [c, 1]
  at::Tensor gradients = softmax.exponentials;
  gradients.mul_(scale / softmax.sums);
  return gradients.scatter_add_(1, targets.row, -(scale * targets.here));
}

struct Inputs {
  at::Tensor hidden, weight, targets, token_weights;
  int64_t chunk;
  const VocabularyRanks* ranks;
};

struct Results {
  at::Tensor tokens;           // [T]
  at::Tensor hidden_gradient;  // undefined where not wanted
  at::Tensor weight_gradient;
};

Results run_chunks(const Inputs& in, bool want_hidden, bool want_weight) {
  const auto wide = in.hidden.options().dtype(wide_type(in.hidden));
  Results out;
  out.tokens = at::empty({in.hidden.size(0)}, wide);
  if (want_hidden) out.hidden_gradient = at::empty_like(in.hidden);
  if (want_weight) out.weight_gradient = at::zeros(in.weight.sizes(), wide);
  const int64_t first_word = in.ranks == nullptr ? 0 : in.ranks->first_word();
  for (int64_t begin = 0; begin < in.hidden.size(0); begin += in.chunk) {
    const int64_t count = std::min(in.chunk, in.hidden.size(0) - begin);
    const at::Tensor hidden = in.hidden.narrow(0, begin, count);
    const auto targets = local_targets(in.targets.narrow(0, begin, count), first_word, in.weight.size(0));
    const Softmax softmax =
        softmax_losses(at::linear(hidden, in.weight).to(wide.dtype()), targets, in.ranks);  // [c, V]
    out.tokens.narrow(0, begin, count).copy_(softmax.losses);
    if (!want_hidden && !want_weight) continue;
    const at::Tensor weights = in.token_weights.narrow(0, begin, count).to(wide.dtype());
    const at::Tensor gradients = logit_gradients(softmax, targets, weights).to(in.hidden.scalar_type());
    if (want_hidden) out.hidden_gradient.narrow(0, begin, count).copy_(gradients.mm(in.weight));
    if (want_weight && in.hidden.scalar_type() == wide.dtype()) {
      out.weight_gradient.addmm_(gradients.t(), hidden);
    } else if (want_weight) {
      out.weight_gradient.add_(gradients.t().mm(hidden));
    }
  }
  return out;
}

struct LinearCrossEntropy : public torch::autograd::Function<LinearCrossEntropy> {
  static variable_list forward(AutogradContext* context, const Variable& hidden, const Variable& weight,
                               const Variable& targets, const Variable& token_weights, int64_t chunk,
                               int64_t ranks, bool training) {
    const Inputs inputs{hidden.contiguous(), weight, targets,
                        token_weights,       chunk,  reinterpret_cast<const VocabularyRanks*>(ranks)};
    const Results results =
        run_chunks(inputs, training && hidden.requires_grad(), training && weight.requires_grad());
    context->save_for_backward({results.hidden_gradient, results.weight_gradient});
    context->saved_data["type"] = static_cast<int64_t>(weight.scalar_type());
    context->mark_non_differentiable({results.tokens});
    return {(results.tokens * token_weights.to(results.tokens.scalar_type())).sum(), results.tokens};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor& upstream = gradients[0];
    at::Tensor hidden;
    at::Tensor weight;
    if (saved[0].defined()) hidden = saved[0] * upstream.to(saved[0].scalar_type());
    if (saved[1].defined()) {
      const auto type = static_cast<at::ScalarType>(context->saved_data["type"].toInt());
      weight = (saved[1] * upstream).to(type);
    }
    return {hidden, weight, {}, {}, {}, {}, {}};
  }
};

}  // namespace

TokenLosses linear_cross_entropy(const at::Tensor& hidden, const at::Tensor& weight,
                                 const at::Tensor& targets, const at::Tensor& token_weights, int64_t chunk,
                                 const VocabularyRanks* ranks) {
  CHILIAD_CHECK(chunk > 0);
  CHILIAD_CHECK_EQ(hidden.size(0), targets.size(0));
  CHILIAD_CHECK_EQ(hidden.size(0), token_weights.size(0));
  // The pointer is used in forward alone.
  const auto out = LinearCrossEntropy::apply(hidden, weight, targets, token_weights, chunk,
                                             reinterpret_cast<int64_t>(ranks), at::GradMode::is_enabled());
  return {out[0], out[1]};
}

}  // namespace chiliad::ops
