#pragma once

#include "chiliad/text/detail/tokenizer_file.h"
#include "chiliad/text/detail/word_model.h"

namespace chiliad::text::detail {

/// SentencePiece's unigram model: the cut of the largest sum of scores; characters of no token are unknown,
/// neighbours together. Time is the word's length times the longest token.
class Unigram final : public WordModel {
 public:
  /// Throws InvalidInput (`place` begins it) where the unknown token is not in the vocabulary.
  Unigram(const BpeParts& parts, const UnigramParts& scores, const std::string& place);

  void encode(std::string_view word, std::vector<int32_t>& ids) const override;
  [[nodiscard]] std::optional<int32_t> id_of(std::string_view token) const override {
    return tokens_.id_of(token);
  }
  [[nodiscard]] const std::string* content_of(int32_t id) const override { return tokens_.content_of(id); }
  [[nodiscard]] int32_t end_of_ids() const override { return tokens_.end_of_ids(); }

 private:
  void add_unknown(std::string_view text, std::vector<int32_t>& ids) const;

  Vocabulary tokens_;
  std::vector<double> scores_;  // by id
  double unknown_score_ = 0.0;
  int32_t unknown_ = 0;
  bool byte_fallback_ = false;
  bool single_precision_ = false;
};

}  // namespace chiliad::text::detail
