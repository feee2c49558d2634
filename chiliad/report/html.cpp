#include "chiliad/report/html.h"

#include <fmt/core.h>

#include <cstdint>
#include <utility>

namespace chiliad::report {
namespace {

constexpr const char* kStyle = R"(
:root{color-scheme:light dark;--bg:#fff;--fg:#1c1f24;--soft:#5c6470;--line:#d9dde3;--box:#f5f6f8;
--s0:#2f6fd0;--s1:#e08a2e;--s2:#2e9b6b;--s3:#c8473f;--s4:#8a5fc0;--s5:#b8972a;--s6:#3fa3b8;--s7:#c7589b;--s8:#9aa1ab}
@media (prefers-color-scheme:dark){:root{--bg:#15181c;--fg:#e6e8eb;--soft:#9aa3ae;--line:#343a42;--box:#1e2227;
--s0:#6fa4f2;--s1:#eea958;--s2:#5cc497;--s3:#e8786f;--s4:#b393e0;--s5:#d8bb5a;--s6:#6fc7da;--s7:#e38abf;--s8:#767d87}}
body{background:var(--bg);color:var(--fg);font:15px/1.45 system-ui,sans-serif;max-width:1180px;margin:1.5em auto;padding:0 1em}
h1{font-size:1.5em;margin:0 0 .2em}h2{font-size:1.15em;margin:1.8em 0 .5em;border-bottom:1px solid var(--line)}
h3{font-size:1em;margin:1.2em 0 .4em}p{margin:.4em 0}.soft{color:var(--soft)}
table{border-collapse:collapse;margin:.5em 0}td,th{padding:.2em .8em .2em 0;text-align:left;vertical-align:top;overflow-wrap:anywhere}
th{color:var(--soft);font-weight:600}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}
tr+tr td{border-top:1px solid var(--line)}
pre{background:var(--box);padding:.8em;overflow:auto;font-size:13px}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(360px,1fr));gap:1em}
figure{margin:0;background:var(--box);padding:.6em}figcaption{font-weight:600;margin-bottom:.3em}
svg{display:block;width:100%;height:auto}svg text{fill:var(--soft);font:11px system-ui,sans-serif}
.grid{stroke:var(--line);stroke-width:1}.mark{stroke:var(--soft);stroke-width:1;stroke-dasharray:3 3}
.legend span{display:inline-block;margin-right:1em;white-space:nowrap}.legend i{display:inline-block;width:.8em;height:.8em;margin-right:.35em}
img{max-width:100%;height:auto}.items{display:flex;flex-wrap:wrap;gap:.8em}.item{background:var(--box);padding:.5em;width:220px;overflow-wrap:anywhere}
.item img{width:100%;image-rendering:pixelated;margin-bottom:.4em}.bad{outline:3px solid var(--s3)}
.shown img{width:auto;max-height:176px}
.tokens{line-height:1.9;overflow-wrap:anywhere}.tokens span{border-radius:2px;padding:1px 0}
.yes{background:color-mix(in srgb,var(--s2) 30%,transparent)}.no{background:color-mix(in srgb,var(--s8) 25%,transparent);color:var(--soft)}
)";

std::string base64(std::span<const std::byte> bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k)
      group = group << 8 | (k < count ? static_cast<uint32_t>(bytes[i + k]) : 0U);
    for (size_t k = 0; k < 4; ++k) text += k <= count ? kDigits[group >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

}  // namespace

std::string escape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        if ((static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') || c == 0x7F) {
          out += "\xEF\xBF\xBD";
        } else {
          out += c;
        }
    }
  }
  return out;
}

std::string foreign_text(std::string_view text) {
  return "<bdi>" + escape(text) + "</bdi>";
}

std::string picture(std::span<const std::byte> png, std::string_view alt) {
  return fmt::format("<img alt=\"{}\" src=\"data:image/png;base64,{}\">", escape(alt), base64(png));
}

std::string section(std::string_view heading, std::string_view body) {
  return fmt::format("<section><h2>{}</h2>\n{}</section>\n", escape(heading), body);
}

std::string paragraph(std::string_view text) {
  return fmt::format("<p>{}</p>\n", escape(text));
}

std::string whole_page(std::string_view title, std::string_view body) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; "
      "style-src 'unsafe-inline'\">\n"
      "<title>{}</title>\n<style>{}</style></head>\n<body>\n{}</body></html>\n",
      escape(title), kStyle, body);
}

Table::Table(std::vector<std::string> headers, size_t numbers_from)
    : headers_(std::move(headers)), numbers_from_(numbers_from) {}

void Table::add(const std::vector<std::string>& cells) {
  rows_.push_back(cells);
}

std::string Table::to_html() const {
  std::string html = "<table>\n";
  const auto line = [&](const std::vector<std::string>& cells, const char* tag) {
    html += "<tr>";
    for (size_t i = 0; i < cells.size(); ++i)
      html += fmt::format("<{}{}>{}</{}>", tag, i >= numbers_from_ ? " class=\"n\"" : "",
                          foreign_text(cells[i]), tag);
    html += "</tr>\n";
  };
  if (!headers_.empty()) line(headers_, "th");
  for (const auto& row : rows_) line(row, "td");
  return html + "</table>\n";
}

}  // namespace chiliad::report
