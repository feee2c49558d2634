#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chiliad/text/detail/charsmap.h"
#include "chiliad/text/detail/pattern.h"

namespace chiliad::text::detail {

/// A token that is cut out of the text before the model sees it.
struct AddedToken {
  int32_t id = 0;
  std::string content;
  bool single_word = false;
  bool lstrip = false;
  bool rstrip = false;
  bool normalized = false;  ///< looked for in normalized text
  bool special = false;
};

struct NormalizerStep {
  enum class Kind {
    kNfc,
    kNfd,
    kNfkc,
    kNfkd,
    kLowercase,
    kReplace,
    kPrepend,
    kStrip,
    kStripAccents,
    kPrecompiled,
    kBert
  };
  Kind kind = Kind::kNfc;
  Pattern pattern;      ///< kReplace
  std::string content;  ///< kReplace, kPrepend
  bool left = false;    ///< kStrip
  bool right = false;
  std::shared_ptr<const Charsmap> charsmap;  ///< kPrecompiled; shared by copies, immutable
  bool clean = false;                        ///< kBert: control characters go, spaces become plain ones
  bool space_chinese = false;                ///< kBert: spaces around ideographs
  bool strip_accents = false;                ///< kBert
  bool lowercase = false;                    ///< kBert
};

enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };
enum class PrependScheme { kAlways, kFirst, kNever };

struct PreTokenizerStep {
  enum class Kind { kSplit, kByteLevel, kMetaspace };
  Kind kind = Kind::kSplit;
  bool split = true;  ///< kByteLevel: by the pattern of GPT-2; kMetaspace: before each replacement
  Pattern pattern;
  SplitBehavior behavior = SplitBehavior::kIsolated;
  bool invert = false;
  bool add_prefix_space = false;  ///< kByteLevel
  std::string replacement;        ///< kMetaspace: of a space
  PrependScheme prepend = PrependScheme::kAlways;
};

struct DecoderStep {
  enum class Kind { kByteLevel, kReplace, kByteFallback, kFuse, kStrip, kMetaspace, kWordPiece };
  Kind kind = Kind::kByteLevel;
  Pattern pattern;      ///< kReplace
  std::string content;  ///< kReplace, kStrip (one character), kMetaspace (what stands for a space),
                        ///< kWordPiece (prefix)
  int64_t start = 0;    ///< kStrip: characters at most
  int64_t stop = 0;
  bool drop_first = false;  ///< kMetaspace
  bool clean_up = false;    ///< kWordPiece: spaces before punctuation go
};

/// Ids around a text.
struct Frame {
  std::vector<int32_t> before;
  std::vector<int32_t> after;
};

struct BpeParts {
  std::vector<std::pair<std::string, int32_t>> vocabulary;
  std::vector<std::pair<std::string, std::string>> merges;  ///< by rank
  std::vector<uint32_t> ranks;                              ///< of the merges; empty: their positions
  std::optional<std::string> unknown;
  std::string continuing_prefix;
  std::string word_suffix;
  bool fuse_unknown = false;
  bool byte_fallback = false;
  bool ignore_merges = false;
};

struct UnigramParts {
  std::vector<double> scores;  ///< by id; minus infinity: never cut out of a text
  std::optional<int32_t> unknown;
  std::optional<double> unknown_score;  ///< of a character; else from the least score
  bool single_precision = false;        ///< sums are rounded as SentencePiece does
};

enum class ModelKind { kBpe, kWordPiece, kUnigram };

/// What a tokenizer.json says, checked part by part.
struct TokenizerFile {
  std::vector<AddedToken> added;
  std::vector<NormalizerStep> normalizer;
  std::vector<PreTokenizerStep> pre_tokenizer;
  ModelKind kind = ModelKind::kBpe;
  BpeParts model;  ///< the others use its vocabulary, unknown token, prefix and byte_fallback
  int64_t max_word_characters = 100;  ///< kWordPiece
  UnigramParts unigram;               ///< kUnigram
  std::optional<std::vector<DecoderStep>> decoder;
  Frame frame;
};

/// `place` begins the messages. Throws InvalidInput.
[[nodiscard]] TokenizerFile parse_tokenizer_file(std::string_view json, const std::string& place);

}  // namespace chiliad::text::detail
