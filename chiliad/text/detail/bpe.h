#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "chiliad/text/detail/tokenizer_file.h"
#include "chiliad/text/detail/word_model.h"

namespace chiliad::text::detail {

/// Byte-pair encoding of words: characters, then the merge of least rank (the leftmost of equals) until none
/// is left. Time is n log n in a word's length. Immutable.
class Bpe final : public WordModel {
 public:
  /// Throws InvalidInput (`place` begins it) for merges of what is not in the vocabulary, and for two tokens
  /// of one id.
  Bpe(BpeParts parts, const std::string& place);
  Bpe(const Bpe&) = delete;
  Bpe& operator=(const Bpe&) = delete;

  /// Appends the ids of one word.
  void encode(std::string_view word, std::vector<int32_t>& ids) const override;

  [[nodiscard]] std::optional<int32_t> id_of(std::string_view token) const override;
  /// Null where no token has the id.
  [[nodiscard]] const std::string* content_of(int32_t id) const override;
  [[nodiscard]] int32_t end_of_ids() const override { return static_cast<int32_t>(contents_.size()); }

 private:
  struct Merge {
    uint32_t rank = 0;
    int32_t id = 0;
  };

  void read_vocabulary(const std::string& place);
  void read_merges(const std::string& place);
  [[nodiscard]] std::vector<int32_t> characters(std::string_view word) const;
  [[nodiscard]] bool add_bytes(std::string_view character, std::vector<int32_t>& ids) const;
  [[nodiscard]] const Merge* merge_of(int32_t left, int32_t right) const;
  void merge(std::vector<int32_t>& ids) const;

  BpeParts parts_;
  StringMap<int32_t> ids_;
  std::vector<const std::string*> contents_;  // by id, into ids_
  std::unordered_map<uint64_t, Merge> merges_;
  std::vector<std::optional<int32_t>> byte_ids_;  // of <0x00> to <0xFF>
  std::optional<int32_t> unknown_;
};

}  // namespace chiliad::text::detail
