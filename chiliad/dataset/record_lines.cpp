#include <fmt/core.h>

#include <algorithm>

#include "chiliad/dataset/detail/draft.h"
#include "chiliad/dataset/detail/file_chars.h"
#include "chiliad/dataset/detail/records.h"
#include "chiliad/text/stored_text.h"

namespace chiliad::dataset::detail {
namespace {

/// The bytes of a line or row; those beyond the limit are only counted.
class RowText {
 public:
  void start(int64_t offset) {
    text_.clear();
    offset_ = offset;
    size_ = 0;
  }
  void add(char c) {
    if (++size_ <= kMaxCaptionBytes) text_.push_back(c);
  }
  [[nodiscard]] uint64_t size() const { return size_; }
  [[nodiscard]] bool is_blank() const { return size_ <= kMaxCaptionBytes && text::trim(text_).empty(); }
  [[nodiscard]] Record record(int64_t number) const {
    if (size_ > kMaxCaptionBytes) {
      return {number,
              static_cast<uint64_t>(offset_),
              {},
              fmt::format("has {} bytes, expected at most {}", size_, kMaxCaptionBytes)};
    }
    return {number, static_cast<uint64_t>(offset_), text_, ""};
  }
  /// A '\r' before the line's end is no part of it.
  void drop_return() {
    if (size_ > kMaxCaptionBytes || !text_.ends_with('\r')) return;
    text_.pop_back();
    --size_;
  }

 private:
  std::string text_;
  int64_t offset_ = 0;
  uint64_t size_ = 0;
};

class CsvReader {
 public:
  CsvReader(const io::File& file, char separator, const OnRow& on_row)
      : chars_(file), separator_(separator), on_row_(on_row) {}

  void run() {
    while (!chars_.at_end()) read_row();
  }

 private:
  void read_row() {
    row_.start(chars_.position());
    fields_.clear();
    begin_field();
    while (!chars_.at_end()) {
      const char c = chars_.stored();
      chars_.advance();
      if (c == '\n' && !inside_quotes_) break;
      take(c);
    }
    finish_row();
  }

  void take(char c) {
    if (c == separator_ && !inside_quotes_) {
      end_field();
      row_.add(c);
      begin_field();
      return;
    }
    if (c == '"' && (quoted_field_ || row_.size() == field_begin_)) {
      quoted_field_ = true;
      inside_quotes_ = !inside_quotes_;  // two quotes close and open again: they stand for one
    }
    row_.add(c);
  }

  void begin_field() {
    field_begin_ = row_.size();
    quoted_field_ = false;
    inside_quotes_ = false;
  }
  void end_field() {
    fields_.push_back(
        {static_cast<uint32_t>(field_begin_), static_cast<uint32_t>(row_.size() - field_begin_)});
  }

  void finish_row() {
    if (row_.is_blank()) return;
    if (!inside_quotes_) row_.drop_return();
    end_field();
    Record record = row_.record(++number_);
    if (inside_quotes_) {
      record.text = {};
      record.problem = fmt::format(
          "a quote is not closed: the row would hold all {} bytes to the end of the file", row_.size());
    }
    on_row_(record, fields_);
  }

  FileChars chars_;
  char separator_;
  const OnRow& on_row_;
  RowText row_;
  std::vector<CsvField> fields_;
  uint64_t field_begin_ = 0;
  int64_t number_ = 0;
  bool quoted_field_ = false;   ///< the field began with a quote
  bool inside_quotes_ = false;  ///< separators and line ends are text
};

/// Without white space around it.
Record trimmed(Record record) {
  const std::string_view text = text::trim(record.text);
  record.offset += static_cast<uint64_t>(text.data() - record.text.data());
  record.text = text;
  return record;
}

}  // namespace

void read_lines(const io::File& file, const OnRecord& on_record) {
  FileChars chars(file);
  RowText line;
  for (int64_t number = 1; !chars.at_end(); ++number) {
    line.start(chars.position());
    while (!chars.at_end()) {
      const char c = chars.stored();
      chars.advance();
      if (c == '\n') break;
      line.add(c);
    }
    if (line.is_blank()) continue;
    const Record record = line.record(number);
    on_record(record.problem.empty() ? trimmed(record) : record);
  }
}

void read_csv(const io::File& file, char separator, const OnRow& on_row) {
  CsvReader(file, separator, on_row).run();
}

}  // namespace chiliad::dataset::detail
