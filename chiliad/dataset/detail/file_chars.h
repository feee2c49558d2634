#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "chiliad/io/file.h"

namespace chiliad::dataset::detail {

/// A file byte by byte, read in pieces.
class FileChars {
 public:
  explicit FileChars(const io::File& file) : file_(file), end_(file.size()), piece_(kPieceBytes) {
    skip_mark();
  }

  [[nodiscard]] bool at_end() const { return position_ == end_; }
  [[nodiscard]] int64_t position() const { return position_; }
  /// Not at the end.
  [[nodiscard]] char stored() {
    if (position_ >= filled_) fill();
    return piece_[static_cast<size_t>(position_ - begin_)];
  }
  void advance() { ++position_; }

 private:
  static constexpr int64_t kPieceBytes = 1 << 20;

  void fill() {
    begin_ = position_;
    const auto bytes = static_cast<size_t>(std::min(kPieceBytes, end_ - begin_));
    file_.read_at(begin_, std::as_writable_bytes(std::span(piece_)).first(bytes));
    filled_ = begin_ + static_cast<int64_t>(bytes);
  }
  /// A byte order mark is no text.
  void skip_mark() {
    constexpr int64_t kMarkBytes = 3;
    if (end_ < kMarkBytes) return;
    fill();
    if (piece_[0] == '\xEF' && piece_[1] == '\xBB' && piece_[2] == '\xBF') position_ = kMarkBytes;
  }

  const io::File& file_;
  int64_t end_;
  std::vector<char> piece_;
  int64_t begin_ = 0;   // of the piece in the file
  int64_t filled_ = 0;  // its end
  int64_t position_ = 0;
};

}  // namespace chiliad::dataset::detail
