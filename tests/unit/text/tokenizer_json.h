#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "chiliad/text/tokenizer.h"

namespace chiliad::test {

/// A byte-level tokenizer of a few tokens: a, b, c, ab, bc, abc, the space, and <end> (id 7).
nlohmann::json small_tokenizer();

std::unique_ptr<text::Tokenizer> open_text(const std::string& json);
std::unique_ptr<text::Tokenizer> open_json(const nlohmann::json& json);

/// What opening says against it; empty where it opens.
std::string refusal_of(const std::string& json);
/// The small tokenizer with a changed part.
std::string refusal_with(const char* pointer, const nlohmann::json& value);

}  // namespace chiliad::test
