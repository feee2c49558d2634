#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "chiliad/dataset/build_tars.h"
#include "chiliad/dataset/detail/where.h"
#include "chiliad/index/index.h"

namespace chiliad::dataset::detail {

/// A member of a tar without its key.
struct Member {
  std::string extension;
  std::vector<std::byte> bytes;
};

/// What a sample of an index becomes.
struct MadeSample {
  std::vector<Member> members;  ///< the picture first; empty where dropped
  std::string dropped;          ///< kind, as in TarReport::dropped; empty: kept
  std::string reason;
  uint64_t hash = 0;  ///< difference_hash, where duplicates are looked for
  bool transcoded = false;
  bool resized = false;
};

/// Leaves the sample out: `kind` as in TarReport::dropped.
void drop(MadeSample& made, const char* kind, std::string reason);
/// Decodes a picture, resizes or transcodes it where `options` say so, and adds it; or drops the sample.
void add_picture(std::vector<std::byte> bytes, const TarOptions& options, MadeSample& made);
/// One caption as text, several as JSON. UTF-8.
void add_captions(const std::vector<std::string>& captions, MadeSample& made);

/// Turns samples of an index into members: reads, checks, decodes, resizes, transcodes. Thread-safe.
class SampleMaker {
 public:
  /// Both are kept; throws InvalidInput for a wrong `where`.
  SampleMaker(const index::Index& index, const TarOptions& options)
      : index_(index), options_(options), where_(Where::parse(options.where)) {}

  /// Throws CorruptData if the source is not what was indexed.
  [[nodiscard]] MadeSample make(int64_t sample) const;

 private:
  [[nodiscard]] Row row_of(int64_t sample) const;
  void add_text(int64_t sample, MadeSample& made) const;

  const index::Index& index_;
  const TarOptions& options_;
  Where where_;
};

}  // namespace chiliad::dataset::detail
