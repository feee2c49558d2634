#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "chiliad/text/detail/utf8.h"
#include "chiliad/text/document_encoder.h"

namespace chiliad::text {
namespace {

using Json = nlohmann::json;

/// Takes the one field and builds nothing of the rest.
class TextField final : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return value("null"); }
  bool boolean(bool) override { return value("a boolean"); }
  bool number_integer(number_integer_t) override { return value("a number"); }
  bool number_unsigned(number_unsigned_t) override { return value("a number"); }
  bool number_float(number_float_t, const string_t&) override { return value("a number"); }
  bool binary(binary_t&) override { return value("bytes"); }
  bool string(string_t& text) override {
    if (!at_text_) return value("a string");
    found_.text = std::move(text);
    found_.refusal.clear();
    at_text_ = false;
    return true;
  }
  bool start_object(size_t) override { return start("an object"); }
  bool start_array(size_t) override { return start("an array"); }
  bool end_object() override { return end(); }
  bool end_array() override { return end(); }
  bool key(string_t& name) override {
    at_text_ = depth_ == 1 && name == "text";
    return true;
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception&) override {
    found_ = {"", fmt::format("expected one JSON object, got something else at byte {}", position)};
    return false;
  }

  [[nodiscard]] LineDocument take() { return std::move(found_); }

 private:
  bool value(const char* kind) {
    if (depth_ == 0) found_.refusal = fmt::format("expected an object with a string 'text', got {}", kind);
    if (at_text_) found_ = {"", fmt::format("text: expected a string, got {}", kind)};
    at_text_ = false;
    return true;
  }
  bool start(const char* kind) {
    if (depth_ > 0 || kind != std::string_view("an object")) value(kind);
    ++depth_;
    return true;
  }
  bool end() {
    --depth_;
    return true;
  }

  LineDocument found_{"", "expected an object with a string 'text', got none"};
  int64_t depth_ = 0;
  bool at_text_ = false;
};

}  // namespace

LineDocument document_of_line(std::string_view line) {
  std::string repaired;
  if (detail::replace_broken(line, repaired)) line = repaired;
  TextField field;
  Json::sax_parse(line, &field);
  return field.take();
}

}  // namespace chiliad::text
