#include <fmt/format.h>

#include <algorithm>

#include "chiliad/base/error.h"
#include "chiliad/text/detail/word_model.h"

namespace chiliad::text::detail {

Vocabulary::Vocabulary(const std::vector<std::pair<std::string, int32_t>>& tokens, const std::string& place) {
  ids_.reserve(tokens.size());
  for (const auto& [content, id] : tokens) {
    const auto entry = ids_.emplace(content, id).first;
    longest_ = std::max(longest_, content.size());
    if (static_cast<size_t>(id) >= contents_.size()) contents_.resize(static_cast<size_t>(id) + 1);
    const std::string*& slot = contents_[static_cast<size_t>(id)];
    if (slot != nullptr && slot != &entry->first) {
      throw InvalidInput(
          place, fmt::format("model.vocab: expected one token an id, got '{}' and '{}' with id {}", *slot,
                             content, id));
    }
    slot = &entry->first;
  }
}

std::optional<int32_t> Vocabulary::id_of(std::string_view token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

const std::string* Vocabulary::content_of(int32_t id) const {
  return id < 0 || id >= end_of_ids() ? nullptr : contents_[static_cast<size_t>(id)];
}

}  // namespace chiliad::text::detail
