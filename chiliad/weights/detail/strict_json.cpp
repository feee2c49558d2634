#include "chiliad/weights/detail/strict_json.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_set>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/base/json_text.h"

namespace chiliad::weights::detail {
namespace {

using Json = nlohmann::json;

class Events : public nlohmann::json_sax<Json> {
 public:
  Events(const std::string& place, const std::string& what, size_t max_depth, JsonHandler& handler)
      : place_(place), what_(what), max_depth_(max_depth), handler_(handler) {}

  bool null() override { return scalar(nullptr); }
  bool boolean(bool value) override { return scalar(value); }
  bool number_integer(number_integer_t value) override { return scalar(static_cast<int64_t>(value)); }
  bool number_unsigned(number_unsigned_t value) override { return scalar(static_cast<uint64_t>(value)); }
  bool number_float(number_float_t value, const string_t&) override { return scalar(value); }
  bool string(string_t& value) override { return scalar(std::move(value)); }
  bool binary(binary_t&) override { return false; }

  bool start_object(std::size_t) override { return open(true); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(false); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    if (!levels_.back().keys.insert(name).second) {
      refuse(fmt::format("{} stands twice{}", quote_name(name),
                         path_.size() > 1 ? " in " + quote_name(path_[0]) : ""));
    }
    path_.back() = std::move(name);
    return true;
  }

  bool parse_error(std::size_t position, const std::string& token,
                   const nlohmann::detail::exception& error) override {
    const bool bad_utf8 = std::string_view(error.what()).find("UTF-8") != std::string_view::npos;
    refuse(fmt::format("expected {}, got other bytes at byte offset {} of it{}", bad_utf8 ? "UTF-8" : "JSON",
                       position == 0 ? 0 : position - 1, bad_utf8 ? "" : ", near " + quote_name(token)));
  }

 private:
  struct Level {
    std::unordered_set<std::string> keys;
  };

  [[noreturn]] void refuse(const std::string& message) const {
    throw CorruptData(place_, fmt::format("{}: {}", what_, message));
  }
  bool scalar(const JsonScalar& value) {
    handler_.on_scalar(path_, value);
    return true;
  }
  bool open(bool is_object) {
    if (levels_.size() >= max_depth_) refuse(fmt::format("expected at most {} levels, got more", max_depth_));
    handler_.on_open(path_, is_object);
    levels_.emplace_back();
    path_.emplace_back();
    return true;
  }
  bool close() {
    levels_.pop_back();
    path_.pop_back();
    handler_.on_close(path_);
    return true;
  }

  const std::string& place_;
  const std::string& what_;
  size_t max_depth_;
  JsonHandler& handler_;
  JsonPath path_;
  std::vector<Level> levels_;
};

}  // namespace

void read_strict_json(std::string_view text, const std::string& place, const std::string& what,
                      size_t max_depth, JsonHandler& handler) {
  // The parser takes a NUL for the end of its input and skips a byte order mark.
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos) {
    throw CorruptData(place,
                      fmt::format("{}: expected JSON, got a NUL byte at byte offset {} of it", what, nul));
  }
  if (text.substr(0, 3) == "\xEF\xBB\xBF") {
    throw CorruptData(place, fmt::format("{}: expected JSON, got a byte order mark", what));
  }
  Events events(place, what, max_depth, handler);
  Json::sax_parse(text.begin(), text.end(), &events);
}

std::string quote_name(std::string_view name) {
  constexpr size_t kMaxShown = 120;
  std::string cut(name.substr(0, kMaxShown));
  if (name.size() > kMaxShown) cut += "...";
  return json_text_replacing(Json(cut));
}

}  // namespace chiliad::weights::detail
