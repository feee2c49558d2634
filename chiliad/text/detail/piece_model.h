#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace chiliad::text::detail {

enum class PieceKind { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };

struct TextPiece {
  std::string content;
  float score = 0.0F;
  PieceKind kind = PieceKind::kNormal;
};

/// What a SentencePiece `.model` says, as far as it changes ids or texts.
struct PieceModel {
  enum class Kind { kUnigram = 1, kBpe = 2 };
  std::vector<TextPiece> pieces;  ///< by id; exactly one is unknown
  Kind kind = Kind::kUnigram;
  bool byte_fallback = false;
  std::string unknown_text = " \xE2\x81\x87 ";  ///< what an unknown piece decodes to
  std::string begin_content = "<s>";
  std::string end_content = "</s>";
  std::string charsmap;  ///< as Charsmap takes it; empty: text stays
  bool add_dummy_prefix = true;
  bool remove_extra_spaces = true;
  bool escape_spaces = true;
};

/// Reads the protocol buffer; fields that are not known are skipped, as the format wants. `place` begins the
/// messages. Throws InvalidInput. Source: sentencepiece_model.proto.
[[nodiscard]] PieceModel parse_piece_model(std::string_view bytes, const std::string& place);

}  // namespace chiliad::text::detail
