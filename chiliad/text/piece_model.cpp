#include "chiliad/text/detail/piece_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include "chiliad/base/error.h"
#include "chiliad/text/detail/utf8.h"

namespace chiliad::text::detail {
namespace {

constexpr size_t kMaxPieces = 1 << 22;
constexpr size_t kMaxPieceBytes = 4096;

struct Field {
  enum class Wire { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
  uint32_t number = 0;
  Wire wire = Wire::kVarint;
  uint64_t value = 0;      // of kVarint, kFixed32
  std::string_view bytes;  // of kBytes
};

/// The fields of one message in order.
class Message {
 public:
  Message(std::string_view rest, const std::string& place) : rest_(rest), place_(place) {}

  /// Nothing at the end.
  [[nodiscard]] std::optional<Field> next() {
    if (rest_.empty()) return std::nullopt;
    const uint64_t tag = varint();
    Field field;
    field.number = static_cast<uint32_t>(std::min<uint64_t>(tag >> 3U, UINT32_MAX));
    switch (tag & 7U) {
      case 0:
        field.value = varint();
        return field;
      case 1:
        field.wire = Field::Wire::kFixed64;
        (void)take(8);
        return field;
      case 2:
        field.wire = Field::Wire::kBytes;
        field.bytes = take(varint());
        return field;
      case 5: {
        field.wire = Field::Wire::kFixed32;
        const std::string_view word = take(4);
        for (size_t i = 4; i-- > 0;) field.value = field.value << 8U | static_cast<uint8_t>(word[i]);
        return field;
      }
      default:
        damaged();
    }
  }

  [[noreturn]] void damaged() const {
    throw InvalidInput(place_, "expected a SentencePiece model, got other or cut bytes. Copy the file anew");
  }

 private:
  uint64_t varint() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<uint8_t>(take(1)[0]);
      value |= static_cast<uint64_t>(byte & 0x7FU) << shift;
      if (byte < 0x80) return value;
    }
    damaged();
  }
  std::string_view take(uint64_t count) {
    if (count > rest_.size()) damaged();
    const std::string_view taken = rest_.substr(0, static_cast<size_t>(count));
    rest_.remove_prefix(static_cast<size_t>(count));
    return taken;
  }

  std::string_view rest_;
  const std::string& place_;
};

[[noreturn]] void refuse(const std::string& place, const std::string& message) {
  throw InvalidInput(place, message);
}

/// The value of a field that must have this kind.
std::string_view bytes_of(const Field& field, const Message& message) {
  if (field.wire != Field::Wire::kBytes) message.damaged();
  return field.bytes;
}
uint64_t number_of(const Field& field, const Message& message) {
  if (field.wire != Field::Wire::kVarint) message.damaged();
  return field.value;
}

TextPiece read_piece(std::string_view bytes, size_t id, const std::string& place) {
  Message message(bytes, place);
  TextPiece piece;
  while (const auto field = message.next()) {
    if (field->number == 1) piece.content = bytes_of(*field, message);
    if (field->number == 2) {
      if (field->wire != Field::Wire::kFixed32) message.damaged();
      piece.score = std::bit_cast<float>(static_cast<uint32_t>(field->value));
    }
    if (field->number == 3) {
      const uint64_t kind = number_of(*field, message);
      if (kind < 1 || kind > 6)
        refuse(place, fmt::format("piece {}: expected a type from 1 to 6, got {}", id, kind));
      piece.kind = static_cast<PieceKind>(kind);
    }
  }
  std::string repaired;
  if (piece.content.empty() || piece.content.size() > kMaxPieceBytes ||
      replace_broken(piece.content, repaired))
    refuse(place, fmt::format("piece {}: expected 1 to {} bytes of UTF-8, got other", id, kMaxPieceBytes));
  if (!std::isfinite(piece.score)) refuse(place, fmt::format("piece {}: expected a finite score", id));
  return piece;
}

void read_trainer(std::string_view bytes, const std::string& place, PieceModel& model) {
  Message message(bytes, place);
  while (const auto field = message.next()) {
    switch (field->number) {
      case 3: {
        const uint64_t kind = number_of(*field, message);
        if (kind != 1 && kind != 2) {
          refuse(place, fmt::format("model type {} is not covered yet. Covered: 1 (unigram), 2 (BPE)", kind));
        }
        model.kind = static_cast<PieceModel::Kind>(kind);
        break;
      }
      case 24:
        if (number_of(*field, message) != 0)
          refuse(place, "treat_whitespace_as_suffix is not covered yet. Covered: spaces before words");
        break;
      case 35:
        model.byte_fallback = number_of(*field, message) != 0;
        break;
      case 44:
        model.unknown_text = bytes_of(*field, message);
        break;
      case 46:
        model.begin_content = bytes_of(*field, message);
        break;
      case 47:
        model.end_content = bytes_of(*field, message);
        break;
      default:
        break;
    }
  }
}

void read_normalizer(std::string_view bytes, const std::string& place, PieceModel& model) {
  Message message(bytes, place);
  while (const auto field = message.next()) {
    if (field->number == 2) model.charsmap = bytes_of(*field, message);
    if (field->number == 3) model.add_dummy_prefix = number_of(*field, message) != 0;
    if (field->number == 4) model.remove_extra_spaces = number_of(*field, message) != 0;
    if (field->number == 5) model.escape_spaces = number_of(*field, message) != 0;
  }
}

void refuse_denormalizer(std::string_view bytes, const std::string& place) {
  Message message(bytes, place);
  while (const auto field = message.next()) {
    if (field->number == 2 && !bytes_of(*field, message).empty())
      refuse(place, "a denormalizer is not covered yet. Covered: models that decode to their pieces");
  }
}

void check(const PieceModel& model, const std::string& place) {
  const auto unknown = std::count_if(model.pieces.begin(), model.pieces.end(), [](const TextPiece& piece) {
    return piece.kind == PieceKind::kUnknown;
  });
  if (unknown != 1)
    refuse(place, fmt::format("expected one unknown piece, got {}. Copy the file anew", unknown));
  const bool has_unused = std::any_of(model.pieces.begin(), model.pieces.end(), [](const TextPiece& piece) {
    return piece.kind == PieceKind::kUnused;
  });
  if (has_unused && model.kind == PieceModel::Kind::kBpe)
    refuse(place,
           "unused pieces of a BPE model are not covered yet. Covered: unigram models with such pieces");
}

}  // namespace

PieceModel parse_piece_model(std::string_view bytes, const std::string& place) {
  Message message(bytes, place);
  PieceModel model;
  while (const auto field = message.next()) {
    switch (field->number) {
      case 1:
        if (model.pieces.size() >= kMaxPieces)
          refuse(place, fmt::format("expected at most {} pieces", kMaxPieces));
        model.pieces.push_back(read_piece(bytes_of(*field, message), model.pieces.size(), place));
        break;
      case 2:
        read_trainer(bytes_of(*field, message), place, model);
        break;
      case 3:
        read_normalizer(bytes_of(*field, message), place, model);
        break;
      case 5:
        refuse_denormalizer(bytes_of(*field, message), place);
        break;
      default:
        break;
    }
  }
  check(model, place);
  return model;
}

}  // namespace chiliad::text::detail
