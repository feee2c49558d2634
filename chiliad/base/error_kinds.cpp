#include "chiliad/base/error_kinds.h"

#include <array>

namespace chiliad {
namespace {

struct KindRow {
  ErrorKind kind;
  const char* name;
  int exit_code;
};

constexpr std::array<KindRow, 5> kRows{{{ErrorKind::kInvalidInput, "invalid_input", 2},
                                        {ErrorKind::kUnavailable, "unavailable", 1},
                                        {ErrorKind::kCorruptData, "corrupt_data", 3},
                                        {ErrorKind::kPeerLost, "peer_lost", 4},
                                        {ErrorKind::kInternal, "internal", 5}}};

const KindRow& row_of(ErrorKind kind) {
  for (const auto& row : kRows) {
    if (row.kind == kind) return row;
  }
  return kRows.back();
}

}  // namespace

ErrorKind kind_of(const std::exception& error) {
  const auto* known = dynamic_cast<const Error*>(&error);
  return known == nullptr ? ErrorKind::kInternal : known->kind();
}

int exit_code(ErrorKind kind) {
  return row_of(kind).exit_code;
}

const char* kind_name(ErrorKind kind) {
  return row_of(kind).name;
}

ErrorKind kind_from_name(std::string_view name) {
  for (const auto& row : kRows) {
    if (name == row.name) return row.kind;
  }
  return ErrorKind::kInternal;
}

}  // namespace chiliad
