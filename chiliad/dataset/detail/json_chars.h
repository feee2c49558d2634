#pragma once

#include <cstddef>
#include <iterator>

namespace chiliad::dataset::detail {

/// Shows a JSON parser a text whose structure is that of the stored bytes, one character a byte, so that its
/// position is that in the file: bytes of and beside UTF-8 are '?', and `\u` is `\n` (halves of surrogate
/// pairs would end the parsing of everything behind them). Strings are read from the stored bytes.
class PlainJson {
 public:
  [[nodiscard]] char shown(char stored) const {
    if (static_cast<unsigned char>(stored) >= 0x80) return '?';
    return after_backslash_ && stored == 'u' ? 'n' : stored;
  }
  void pass(char stored) { after_backslash_ = stored == '\\' && !after_backslash_; }

 private:
  bool after_backslash_ = false;
};

/// Input iterator over a `Source` with at_end(), peek() and advance(); all copies share the source's place.
template <typename Source>
class CharIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;

  CharIterator() = default;
  explicit CharIterator(Source* source) : source_(source) {}
  char operator*() const { return source_->peek(); }
  CharIterator& operator++() {
    source_->advance();
    return *this;
  }
  CharIterator operator++(int) {
    const CharIterator before = *this;
    source_->advance();
    return before;
  }
  friend bool operator==(const CharIterator& a, const CharIterator& b) { return a.ended() == b.ended(); }

 private:
  [[nodiscard]] bool ended() const { return source_ == nullptr || source_->at_end(); }

  Source* source_ = nullptr;  // null: the end
};

}  // namespace chiliad::dataset::detail
