#pragma once

#include "chiliad/text/detail/tokenizer_file.h"
#include "chiliad/text/detail/word_model.h"

namespace chiliad::text::detail {

/// BERT's model: the longest token that begins the word, then the longest that goes on; a word that cannot be
/// cut so, or is too long, is unknown as a whole.
class WordPiece final : public WordModel {
 public:
  /// Throws InvalidInput (`place` begins it) where the unknown token is not in the vocabulary.
  WordPiece(const BpeParts& parts, int64_t max_characters, const std::string& place);

  void encode(std::string_view word, std::vector<int32_t>& ids) const override;
  [[nodiscard]] std::optional<int32_t> id_of(std::string_view token) const override {
    return tokens_.id_of(token);
  }
  [[nodiscard]] const std::string* content_of(int32_t id) const override { return tokens_.content_of(id); }
  [[nodiscard]] int32_t end_of_ids() const override { return tokens_.end_of_ids(); }

 private:
  Vocabulary tokens_;
  std::string prefix_;
  int64_t max_characters_;
  int32_t unknown_ = 0;
};

}  // namespace chiliad::text::detail
