#include "chiliad/layers/vocabulary.h"

#include <ATen/ATen.h>

namespace chiliad::layers {
namespace {

class GroupVocabulary final : public ops::VocabularyRanks {
 public:
  GroupVocabulary(const TensorParallel& ranks, int64_t num_words)
      : ranks_(ranks), first_word_(ranks.rank() * num_words) {}

  [[nodiscard]] int64_t first_word() const override { return first_word_; }
  [[nodiscard]] at::Tensor largest(const at::Tensor& x) const override { return largest_of_ranks(ranks_, x); }
  [[nodiscard]] at::Tensor sum(const at::Tensor& x) const override { return sum_partial(ranks_, x); }

 private:
  TensorParallel ranks_;
  int64_t first_word_;
};

}  // namespace

at::Tensor vocabulary_embedding(const TensorParallel& ranks, const at::Tensor& table,
                                const at::Tensor& tokens) {
  if (ranks.size() == 1) return at::embedding(table, tokens).unsqueeze(0);
  const at::Tensor row = tokens - ranks.rank() * table.size(0);
  const at::Tensor elsewhere = row.lt(0).logical_or_(row.ge(table.size(0)));
  const at::Tensor own = at::embedding(table, row.masked_fill(elsewhere, 0));  // [T, D]
  return scatter_rows(ranks, own.masked_fill(elsewhere.unsqueeze(1), 0).unsqueeze(0));
}

ops::TokenLosses vocabulary_loss(const TensorParallel& ranks, const at::Tensor& hidden,
                                 const at::Tensor& table, const at::Tensor& targets,
                                 const at::Tensor& token_weights, int64_t chunk) {
  if (ranks.size() == 1) return ops::linear_cross_entropy(hidden, table, targets, token_weights, chunk);
  const GroupVocabulary shared(ranks, table.size(0));
  auto losses = ops::linear_cross_entropy(hidden, table, targets, token_weights, chunk, &shared);
  losses.loss = sum_gradient(ranks, losses.loss);
  return losses;
}

}  // namespace chiliad::layers
