#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "chiliad/base/error.h"
#include "chiliad/dataset/detail/draft.h"
#include "chiliad/dataset/detail/file_chars.h"
#include "chiliad/dataset/detail/json_chars.h"
#include "chiliad/dataset/detail/records.h"

namespace chiliad::dataset::detail {
namespace {

using Json = nlohmann::json;

/// What the parser reads; keeps the bytes of the record that is open.
class ListChars {
 public:
  explicit ListChars(const io::File& file) : chars_(file) {}

  [[nodiscard]] bool at_end() const { return chars_.at_end(); }
  [[nodiscard]] char peek() { return plain_.shown(chars_.stored()); }
  void advance() {
    const char stored = chars_.stored();
    plain_.pass(stored);
    if (open_ && record_.size() <= kMaxCaptionBytes) record_.push_back(stored);
    chars_.advance();
  }
  [[nodiscard]] int64_t position() const { return chars_.position(); }

  /// The brace was just passed.
  void open_record() {
    record_ = "{";
    open_ = true;
  }
  [[nodiscard]] const std::string& close_record() {
    open_ = false;
    return record_;
  }

 private:
  FileChars chars_;
  PlainJson plain_;
  std::string record_;
  bool open_ = false;
};

class ListReader final : public nlohmann::json_sax<Json> {
 public:
  ListReader(const io::File& file, ListChars& chars, const OnRecord& on_record)
      : place_(file.path().string()), chars_(chars), on_record_(on_record) {}

  bool null() override { return value("null"); }
  bool boolean(bool) override { return value("a boolean"); }
  bool number_integer(number_integer_t) override { return value("a number"); }
  bool number_unsigned(number_unsigned_t) override { return value("a number"); }
  bool number_float(number_float_t, const string_t&) override { return value("a number"); }
  bool binary(binary_t&) override { return value("bytes"); }
  bool string(string_t&) override { return value("a string"); }
  bool key(string_t&) override { return true; }
  bool start_object(size_t) override {
    if (depth_ == 0) refuse_top("an object");
    if (depth_ == 1) {
      ++number_;
      begin_ = chars_.position() - 1;
      chars_.open_record();
    }
    return deeper();
  }
  bool start_array(size_t) override {
    if (depth_ == 1) value("a list");
    return deeper();
  }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool end_object() override {
    if (--depth_ != 1) return true;
    const std::string& text = chars_.close_record();
    Record record{number_, static_cast<uint64_t>(begin_), text, ""};
    if (text.size() > kMaxCaptionBytes) {
      record.text = {};
      record.problem =
          fmt::format("has {} bytes, expected at most {}", chars_.position() - begin_, kMaxCaptionBytes);
    }
    on_record_(record);
    return true;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override {
    throw InvalidInput(
        place_, fmt::format("byte {}: the list {} behind record {}: expected records up to a ']'. Get "
                            "the whole file, or mend it there",
                            chars_.position(), chars_.at_end() ? "breaks off" : "is no JSON", number_));
  }

 private:
  [[noreturn]] void refuse_top(const char* kind) const {
    throw InvalidInput(place_,
                       fmt::format("expected a list of records, got {}. Name a file that holds [ {{...}}, "
                                   "{{...}} ], or one object a line in a file *.jsonl",
                                   kind));
  }
  bool value(const char* kind) {
    if (depth_ == 0) refuse_top(kind);
    if (depth_ == 1) {
      on_record_({++number_,
                  static_cast<uint64_t>(chars_.position()),
                  {},
                  fmt::format("expected an object, got {}", kind)});
    }
    return true;
  }
  bool deeper() {
    if (++depth_ <= kMaxJsonDepth) return true;
    throw InvalidInput(place_, fmt::format("byte {}: record {} is nested deeper than {}. Take it out",
                                           chars_.position(), number_, kMaxJsonDepth));
  }

  std::string place_;
  ListChars& chars_;
  const OnRecord& on_record_;
  int64_t number_ = 0;
  int64_t begin_ = 0;
  int depth_ = 0;
};

}  // namespace

void read_json_list(const io::File& file, const OnRecord& on_record) {
  ListChars chars(file);
  ListReader reader(file, chars, on_record);
  Json::sax_parse(CharIterator(&chars), CharIterator<ListChars>(), &reader);
}

}  // namespace chiliad::dataset::detail
