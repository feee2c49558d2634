#include "chiliad/observe/terminal_progress.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "chiliad/base/units.h"

namespace chiliad::observe {
namespace {

constexpr int64_t kBarWidth = 24;

std::string bar(int64_t done, int64_t total) {
  const int64_t filled = std::clamp<int64_t>(kBarWidth * done / total, 0, kBarWidth);
  return "[" + std::string(static_cast<size_t>(filled), '#') +
         std::string(static_cast<size_t>(kBarWidth - filled), '.') + "] ";
}

}  // namespace

ProgressStyle progress_style(bool quiet, int fd) {
  if (quiet) return ProgressStyle::kQuiet;
  const char* terminal = std::getenv("TERM");
  const bool redraws = terminal != nullptr && std::string_view(terminal) != "dumb";
  return redraws && ::isatty(fd) == 1 ? ProgressStyle::kBar : ProgressStyle::kLines;
}

TerminalProgress::TerminalProgress(std::ostream& out, ProgressStyle style, const Clock& clock,
                                   ProgressOptions options)
    : out_(out),
      style_(style),
      clock_(clock),
      options_(std::move(options)),
      start_(clock.now()),
      next_draw_(start_ + (style == ProgressStyle::kLines ? options_.line_interval : Nanoseconds(0))) {}

void TerminalProgress::update(int64_t done, int64_t total, const std::string& detail) {
  if (first_ < 0) {
    first_ = done;
    start_ = clock_.now();
  }
  done_ = done;
  total_ = total;
  detail_ = detail;
  if (style_ == ProgressStyle::kQuiet || clock_.now() < next_draw_) return;
  draw();
}

std::string TerminalProgress::count(int64_t value) const {
  return options_.bytes ? format_bytes(value) : fmt::format("{}", value);
}

std::string TerminalProgress::text() const {
  std::string line = options_.label + " ";
  if (total_ > 0) {
    if (style_ == ProgressStyle::kBar) line += bar(done_, total_);
    line += fmt::format("{}/{} ({}%)", count(done_), count(total_), 100 * done_ / total_);
  } else {
    line += count(done_);
  }
  const double elapsed = to_seconds(clock_.now() - start_);
  const double rate = elapsed > 0.0 ? static_cast<double>(done_ - first_) / elapsed : 0.0;
  if (rate > 0.0) {
    line += options_.bytes ? fmt::format(", {}/s", format_bytes(static_cast<int64_t>(rate)))
                           : fmt::format(", {:.3g} {}s/s", rate, options_.unit);
    if (total_ > done_) line += ", " + format_seconds(static_cast<double>(total_ - done_) / rate) + " left";
  }
  if (!detail_.empty()) line += ", " + detail_;
  return line;
}

void TerminalProgress::draw() {
  drawn_ = done_;
  if (style_ == ProgressStyle::kBar) {
    out_ << "\r\033[K" << text() << std::flush;
    bar_shown_ = true;
    next_draw_ = clock_.now() + options_.bar_interval;
  } else {
    out_ << text() << '\n' << std::flush;
    next_draw_ = clock_.now() + options_.line_interval;
  }
}

void TerminalProgress::clear() {
  if (!bar_shown_) return;
  out_ << "\r\033[K" << std::flush;
  bar_shown_ = false;
  next_draw_ = clock_.now();
}

void TerminalProgress::finish() {
  if (style_ == ProgressStyle::kQuiet || first_ < 0) return;
  if (style_ == ProgressStyle::kBar) {
    draw();
    out_ << '\n' << std::flush;
  } else if (drawn_ != done_) {
    draw();
  }
  bar_shown_ = false;
}

}  // namespace chiliad::observe
