#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace chiliad::weights {

/// How sentence-transformers make one vector of a text encoder's rows.
struct SentenceOptions {
  enum class Pooling { kMean, kFirst };
  Pooling pooling = Pooling::kMean;
  bool normalise = false;  ///< vectors of length 1
  int64_t max_tokens = 0;  ///< longer texts are cut; 0: not said
};

/// modules.json and the files that it names; nothing where the folder has none. Throws InvalidInput naming
/// the module or setting that is not supported.
[[nodiscard]] std::optional<SentenceOptions> read_sentence_modules(const std::filesystem::path& folder);

}  // namespace chiliad::weights
