#include "chiliad/report/sample_box.h"

#include <fmt/core.h>

#include "chiliad/report/html.h"

namespace chiliad::report {

std::string to_html(const SampleBox& box) {
  std::string html = fmt::format("<div class=\"item shown{}\">", box.is_bad ? " bad" : "");
  if (!box.thumbnail.png.empty()) html += picture(box.thumbnail.png, box.key);
  html += fmt::format("<strong>{}</strong>\n", foreign_text(box.key));
  for (const std::string& fact : box.facts)
    html += fmt::format("<p class=\"soft\">{}</p>\n", foreign_text(fact));
  if (!box.text.empty()) html += fmt::format("<p>{}</p>", foreign_text(box.text));
  return html + "</div>\n";
}

std::string to_html(const std::vector<SampleBox>& boxes) {
  std::string html = "<div class=\"items\">";
  for (const SampleBox& box : boxes) html += to_html(box);
  return html + "</div>\n";
}

}  // namespace chiliad::report
