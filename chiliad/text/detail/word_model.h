#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace chiliad::text::detail {

/// Lets string_views look up strings.
struct StringHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};
template <typename Value>
using StringMap = std::unordered_map<std::string, Value, StringHash, std::equal_to<>>;

/// Cuts words into tokens of a vocabulary. Immutable, thread-safe.
class WordModel {
 public:
  virtual ~WordModel() = default;
  /// Appends the ids of one word.
  virtual void encode(std::string_view word, std::vector<int32_t>& ids) const = 0;
  [[nodiscard]] virtual std::optional<int32_t> id_of(std::string_view token) const = 0;
  /// Null where no token has the id.
  [[nodiscard]] virtual const std::string* content_of(int32_t id) const = 0;
  [[nodiscard]] virtual int32_t end_of_ids() const = 0;
};

/// The tokens of a model by content and by id.
class Vocabulary {
 public:
  /// Throws InvalidInput (`place` begins it) for two tokens of one id.
  Vocabulary(const std::vector<std::pair<std::string, int32_t>>& tokens, const std::string& place);
  Vocabulary(const Vocabulary&) = delete;
  Vocabulary& operator=(const Vocabulary&) = delete;

  [[nodiscard]] std::optional<int32_t> id_of(std::string_view token) const;
  [[nodiscard]] const std::string* content_of(int32_t id) const;
  [[nodiscard]] int32_t end_of_ids() const { return static_cast<int32_t>(contents_.size()); }
  [[nodiscard]] size_t longest() const { return longest_; }  ///< bytes

 private:
  StringMap<int32_t> ids_;
  std::vector<const std::string*> contents_;  // by id, into ids_
  size_t longest_ = 0;
};

}  // namespace chiliad::text::detail
