#include "chiliad/dataset/detail/where.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/image/image.h"

namespace chiliad::dataset::detail {
namespace {

using Value = Where::Value;

struct Column {
  const char* name;
  double (*value)(const Row&);
};

template <image::Flag flag>
double has_flag(const Row& row) {
  return row.image != nullptr && (row.image->image_flags & flag) != 0 ? 1.0 : 0.0;
}

double width(const Row& row) {
  return row.image == nullptr ? 0.0 : row.image->width;
}
double height(const Row& row) {
  return row.image == nullptr ? 0.0 : row.image->height;
}

constexpr Column kColumns[]{
    {"width", width},
    {"height", height},
    {"pixels", [](const Row& row) { return width(row) * height(row); }},
    {"aspect", [](const Row& row) { return height(row) > 0 ? width(row) / height(row) : 0.0; }},
    {"bytes",
     [](const Row& row) { return row.image == nullptr ? 0.0 : static_cast<double>(row.image->length); }},
    {"captions", [](const Row& row) { return static_cast<double>(row.num_captions); }},
    {"caption_bytes", [](const Row& row) { return static_cast<double>(row.caption_bytes); }},
    {"progressive", has_flag<image::kProgressive>},
    {"alpha", has_flag<image::kAlpha>},
    {"palette", has_flag<image::kPalette>},
    {"grey", has_flag<image::kGrey>},
    {"cmyk", has_flag<image::kCmyk>},
    {"animated", has_flag<image::kAnimated>},
};

/// Recursive descent; a level a precedence.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Value run() {
    Value value = either();
    if (at_ != text_.size()) fail("expected and, or, a comparison or the end");
    return value;
  }

 private:
  Value either() {
    Value left = both();
    while (take_word("or")) {
      left = [a = std::move(left), b = both()](const Row& row) {
        return a(row) != 0.0 || b(row) != 0.0 ? 1.0 : 0.0;
      };
    }
    return left;
  }
  Value both() {
    Value left = negation();
    while (take_word("and")) {
      left = [a = std::move(left), b = negation()](const Row& row) {
        return a(row) != 0.0 && b(row) != 0.0 ? 1.0 : 0.0;
      };
    }
    return left;
  }
  Value negation() {
    if (!take_word("not")) return comparison();
    const Nesting nesting(*this);
    return [a = negation()](const Row& row) { return a(row) == 0.0 ? 1.0 : 0.0; };
  }
  Value comparison() {
    Value a = sum();
    for (const char* sign : {"<=", ">=", "==", "!=", "<", ">"}) {
      if (!take(sign)) continue;
      return compare(sign, std::move(a), sum());
    }
    if (at_ < text_.size() && text_[at_] == '=') fail("expected == to compare");
    return a;
  }
  static Value compare(std::string_view sign, Value a, Value b) {
    if (sign == "<=") return [a, b](const Row& row) { return a(row) <= b(row) ? 1.0 : 0.0; };
    if (sign == ">=") return [a, b](const Row& row) { return a(row) >= b(row) ? 1.0 : 0.0; };
    if (sign == "==") return [a, b](const Row& row) { return a(row) == b(row) ? 1.0 : 0.0; };
    if (sign == "!=") return [a, b](const Row& row) { return a(row) != b(row) ? 1.0 : 0.0; };
    if (sign == "<") return [a, b](const Row& row) { return a(row) < b(row) ? 1.0 : 0.0; };
    return [a, b](const Row& row) { return a(row) > b(row) ? 1.0 : 0.0; };
  }
  Value sum() {
    Value left = product();
    for (;;) {
      if (take("+")) {
        left = [a = std::move(left), b = product()](const Row& row) { return a(row) + b(row); };
      } else if (take("-")) {
        left = [a = std::move(left), b = product()](const Row& row) { return a(row) - b(row); };
      } else {
        return left;
      }
    }
  }
  Value product() {
    Value left = factor();
    for (;;) {
      if (take("*")) {
        left = [a = std::move(left), b = factor()](const Row& row) { return a(row) * b(row); };
      } else if (take("/")) {
        left = [a = std::move(left), b = factor()](const Row& row) { return a(row) / b(row); };
      } else {
        return left;
      }
    }
  }
  Value factor() {
    const Nesting nesting(*this);
    if (take("(")) {
      Value value = either();
      if (!take(")")) fail("expected )");
      return value;
    }
    if (take("-")) return [a = factor()](const Row& row) { return -a(row); };
    skip_space();
    if (at_ < text_.size() &&
        (std::isdigit(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '.'))
      return number();
    return column();
  }
  Value number() {
    double value = 0;
    const auto [end, problem] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (problem != std::errc()) fail("expected a number");
    at_ = static_cast<size_t>(end - text_.data());
    return [value](const Row&) { return value; };
  }
  Value column() {
    const std::string name = word();
    for (const Column& column : kColumns) {
      if (name != column.name) continue;
      at_ += name.size();
      return column.value;
    }
    fail(fmt::format("expected a number or one of {}", fmt::join(Where::columns(), ", ")));
  }

  /// Letters and underscores from here on.
  std::string word() {
    skip_space();
    size_t end = at_;
    while (end < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[end])) != 0 || text_[end] == '_'))
      ++end;
    return std::string(text_.substr(at_, end - at_));
  }
  bool take_word(const char* wanted) {
    if (word() != wanted) return false;
    at_ += std::string_view(wanted).size();
    return true;
  }
  bool take(std::string_view wanted) {
    skip_space();
    if (!text_.substr(at_).starts_with(wanted)) return false;
    at_ += wanted.size();
    return true;
  }
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n')) ++at_;
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw InvalidInput("where", fmt::format("character {} of '{}': {}, got '{}'", at_ + 1, text_, what,
                                            text_.substr(at_, 20)));
  }

  struct Nesting {
    explicit Nesting(Parser& of) : parser(of) {
      constexpr int kMost = 64;
      if (++of.depth_ > kMost) of.fail(fmt::format("expected at most {} levels", kMost));
    }
    ~Nesting() { --parser.depth_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;
    Parser& parser;
  };

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Where Where::parse(std::string_view text) {
  Where where;
  if (text.find_first_not_of(" \t\n") != std::string_view::npos) where.condition_ = Parser(text).run();
  return where;
}

std::vector<std::string> Where::columns() {
  std::vector<std::string> names;
  for (const Column& column : kColumns) names.emplace_back(column.name);
  return names;
}

}  // namespace chiliad::dataset::detail
