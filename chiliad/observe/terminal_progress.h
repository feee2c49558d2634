#pragma once

#include <cstdint>
#include <ostream>
#include <string>

#include "chiliad/base/clock.h"

namespace chiliad::observe {

/// How progress is shown: a bar that is redrawn, a plain line now and then (logs, pipes), or nothing.
enum class ProgressStyle { kQuiet, kLines, kBar };

/// kBar where `fd` is a terminal that can redraw a line, else kLines; kQuiet where asked.
[[nodiscard]] ProgressStyle progress_style(bool quiet, int fd);

struct ProgressOptions {
  std::string label;
  bool bytes = false;         ///< the counts are bytes
  std::string unit = "step";  ///< of the counts, where they are not bytes
  Nanoseconds line_interval = std::chrono::seconds(5);
  Nanoseconds bar_interval = std::chrono::milliseconds(100);
};

/// Shows how far a long job is, how fast, and when it will be done. The rate is that of this process's own
/// work, so that a resumed run does not look fast. Not thread-safe.
class TerminalProgress {
 public:
  /// `out` and `clock` outlive it.
  TerminalProgress(std::ostream& out, ProgressStyle style, const Clock& clock, ProgressOptions options);

  /// `done` of `total` (0: unknown); `detail` follows, e.g. "loss 0.12". Draws only when it is time to.
  void update(int64_t done, int64_t total, const std::string& detail);
  /// Takes the bar away so that something else can be printed; the next update draws it again.
  void clear();
  /// Draws the last state once and ends the line.
  void finish();

 private:
  [[nodiscard]] std::string text() const;
  [[nodiscard]] std::string count(int64_t value) const;
  void draw();

  std::ostream& out_;
  ProgressStyle style_;
  const Clock& clock_;
  ProgressOptions options_;
  Nanoseconds start_;
  Nanoseconds next_draw_;
  int64_t first_ = -1;  // count at the first update
  int64_t done_ = 0;
  int64_t total_ = 0;
  int64_t drawn_ = -1;  // count that was drawn last
  std::string detail_;
  bool bar_shown_ = false;
};

}  // namespace chiliad::observe
