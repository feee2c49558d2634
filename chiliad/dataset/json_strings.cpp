#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "chiliad/dataset/detail/json_chars.h"
#include "chiliad/dataset/detail/json_text.h"

namespace chiliad::dataset::detail {
namespace {

using Json = nlohmann::json;

class MemoryChars {
 public:
  explicit MemoryChars(std::string_view text) : text_(text) {}
  [[nodiscard]] bool at_end() const { return position_ == text_.size(); }
  [[nodiscard]] char peek() const { return plain_.shown(text_[position_]); }
  void advance() { plain_.pass(text_[position_++]); }
  [[nodiscard]] size_t position() const { return position_; }

 private:
  std::string_view text_;
  size_t position_ = 0;
  PlainJson plain_;
};

std::string as_shown(std::string_view name) {
  std::string shown;
  for (const char c : name) shown.push_back(PlainJson().shown(c));
  return shown;
}

/// The parser has read a string exactly up to its last quote when it says so, and between what came before
/// and the string's first quote stand only white space, a colon or a comma.
class StringFinder final : public nlohmann::json_sax<Json> {
 public:
  StringFinder(std::string_view text, std::span<const std::string> names, const MemoryChars& chars)
      : text_(text), chars_(chars) {
    for (const auto& name : names) names_.push_back(as_shown(name));
  }

  bool null() override { return value("null"); }
  bool boolean(bool) override { return value("a boolean"); }
  bool number_integer(number_integer_t) override { return value("a number"); }
  bool number_unsigned(number_unsigned_t) override { return value("a number"); }
  bool number_float(number_float_t, const string_t&) override { return value("a number"); }
  bool binary(binary_t&) override { return value("bytes"); }
  bool string(string_t&) override {
    const bool wanted = field_ < names_.size() && (depth_ == 1 || (depth_ == 2 && in_list_));
    if (wanted) {
      const size_t begin = text_.find('"', before_);
      found_.found.push_back(
          {field_, static_cast<uint32_t>(begin), static_cast<uint32_t>(chars_.position() - begin)});
    }
    return value("a string");
  }
  bool start_object(size_t) override { return start(false); }
  bool start_array(size_t) override { return start(true); }
  bool end_object() override { return end(); }
  bool end_array() override { return end(); }
  bool key(string_t& name) override {
    before_ = chars_.position();
    if (depth_ != 1) return true;
    field_ = static_cast<size_t>(std::find(names_.begin(), names_.end(), name) - names_.begin());
    std::erase_if(found_.found, [&](const JsonString& other) { return other.name == field_; });
    return true;
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception&) override {
    found_ = {{}, fmt::format("is not JSON from byte {} on", position == 0 ? 0 : position - 1)};
    return false;
  }

  [[nodiscard]] JsonStrings take() { return std::move(found_); }

 private:
  bool value(const char* kind) {
    before_ = chars_.position();
    return depth_ > 0 || refuse(fmt::format("expected a JSON object, got {}", kind));
  }
  bool start(bool list) {
    before_ = chars_.position();
    if (depth_ == 0 && list) return refuse("expected a JSON object, got a list");
    if (depth_ == 1) in_list_ = list;
    if (++depth_ > kMaxJsonDepth) return refuse(fmt::format("is nested deeper than {}", kMaxJsonDepth));
    return true;
  }
  bool end() {
    before_ = chars_.position();
    --depth_;
    return true;
  }
  bool refuse(std::string problem) {
    found_ = {{}, std::move(problem)};
    return false;
  }

  std::string_view text_;
  const MemoryChars& chars_;
  std::vector<std::string> names_;
  JsonStrings found_;
  size_t before_ = 0;  ///< a string begins at the first quote from here on
  size_t field_ = 0;   ///< in names_, or their number
  int depth_ = 0;
  bool in_list_ = false;  ///< the field at depth 1 holds a list
};

}  // namespace

JsonStrings find_json_strings(std::string_view text, std::span<const std::string> names) {
  MemoryChars chars(text);
  StringFinder finder(text, names, chars);
  Json::sax_parse(CharIterator(&chars), CharIterator<MemoryChars>(), &finder);
  return finder.take();
}

}  // namespace chiliad::dataset::detail
