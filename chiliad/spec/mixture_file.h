#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace chiliad::spec {

/// Which records of a file are taken: LLaVA-NeXT's `sampling_strategy`.
struct Sampling {
  enum class Kind { kAll, kFirst, kEnd, kRandom };
  Kind kind = Kind::kAll;
  int64_t number = 0;    ///< of records, or of hundredths where `percent`
  bool percent = false;  ///< rounded up to whole records
  /// How many of `num_records`; at most all.
  [[nodiscard]] int64_t count(int64_t num_records) const;
};

/// One file of a mixture, as its author wrote it down.
struct MixtureEntry {
  std::string path;   ///< as written: absolute, or from the mixture's folder
  std::string place;  ///< "file:line:column", for messages
  Sampling sampling;
};

/// Reads a mixture of LLaVA-NeXT: a map with the list `datasets`, or the list alone, of {json_path,
/// sampling_strategy}, as YAML or JSON. sampling_strategy: all (default), first:N, end:N, random:N, N a whole
/// number or a percentage. `DIR/{a,b}.json` stands for both files, each with that strategy. Other keys of
/// an entry are refused by name. Throws InvalidInput with the place.
[[nodiscard]] std::vector<MixtureEntry> parse_mixture(std::string_view text, const std::string& name);

}  // namespace chiliad::spec
