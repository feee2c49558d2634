#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace chiliad::report {

/// Text as it may stand in HTML, in an attribute too. Control characters become U+FFFD.
[[nodiscard]] std::string escape(std::string_view text);
/// The same where the text's own direction must not reach beyond it, e.g. a caption.
[[nodiscard]] std::string foreign_text(std::string_view text);
/// `<img>` of a PNG file inside the page.
[[nodiscard]] std::string picture(std::span<const std::byte> png, std::string_view alt);
/// `<section>` with a heading; `body` is HTML.
[[nodiscard]] std::string section(std::string_view heading, std::string_view body);
/// A paragraph of plain text.
[[nodiscard]] std::string paragraph(std::string_view text);
/// A whole page, which needs nothing from elsewhere, in light or dark colours as the reader's system says.
/// `body` is HTML.
[[nodiscard]] std::string whole_page(std::string_view title, std::string_view body);

/// A table of plain texts.
class Table {
 public:
  /// No header line where there are no headers. From column `numbers_from` on cells are set as numbers.
  explicit Table(std::vector<std::string> headers, size_t numbers_from = 1);
  void add(const std::vector<std::string>& cells);
  [[nodiscard]] bool empty() const { return rows_.empty(); }
  [[nodiscard]] std::string to_html() const;

 private:
  std::vector<std::string> headers_;
  size_t numbers_from_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace chiliad::report
