#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace chiliad::ops {

/// The ranks that share a vocabulary, each with some rows of the table: sums and maxima over them. Collective
/// calls, made in the same order by all.
class VocabularyRanks {
 public:
  virtual ~VocabularyRanks() = default;
  /// Word of this rank's first row.
  [[nodiscard]] virtual int64_t first_word() const = 0;
  /// Element by element over the ranks, equal bits on all of them; without gradient.
  [[nodiscard]] virtual at::Tensor largest(const at::Tensor& x) const = 0;
  [[nodiscard]] virtual at::Tensor sum(const at::Tensor& x) const = 0;
};

struct TokenLosses {
  at::Tensor loss;    ///< [] sum of weight * loss; fp32, or fp64 for fp64
  at::Tensor tokens;  ///< [T] loss of each token, unweighted, 0 where ignored; without gradient
};

inline constexpr int64_t kIgnoredTarget = -100;

/// Cross-entropy of hidden weight^T against targets, `chunk` tokens at a time: the logits of all tokens never
/// exist. Where a gradient is wanted, forward makes that of hidden and weight as well and keeps them;
/// backward only scales them. The logits are widened to fp32 before the softmax. hidden: [T, D]; weight: [V,
/// D] (this rank's rows); targets: [T] int64 words or kIgnoredTarget; token_weights: [T]; ranks: null where
/// the table is whole. With ranks the gradient of hidden is this rank's part of a sum, and the upstream
/// gradient must be equal on all.
[[nodiscard]] TokenLosses linear_cross_entropy(const at::Tensor& hidden, const at::Tensor& weight,
                                               const at::Tensor& targets, const at::Tensor& token_weights,
                                               int64_t chunk, const VocabularyRanks* ranks = nullptr);

}  // namespace chiliad::ops
