#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "chiliad/base/clock.h"

namespace chiliad::observe {

/// What the rank's own thread does, one thing after the other.
inline constexpr const char* kStepTrack = "step";
/// Exchanges from their start to the end of the wait for them.
inline constexpr const char* kFlightTrack = "in flight";

/// A span of a step's trace. Texts are string literals or outlive the recorder.
struct TraceSpan {
  const char* name = "";
  const char* track = "";  ///< line of the picture that it is drawn on
  Nanoseconds start{0};
  Nanoseconds end{0};
  int32_t layer = -1;
  int32_t slot = -1;
  bool overlaps = false;  ///< spans of its track lie across each other
};

/// Collects what one rank did in each of a few steps and writes it in the trace event format of Chrome, one
/// file a step, which ui.perfetto.dev and chrome://tracing open. Memory is bounded: spans beyond
/// `kMaxSpans` are counted, not kept. A failure to write is warned about and costs that file. Not
/// thread-safe.
class TraceRecorder {
 public:
  static constexpr size_t kMaxSpans = 50'000;

  /// layer_names: by number, for the spans' names. The folder is made by the first file.
  TraceRecorder(std::filesystem::path folder, int rank, int64_t first_step, int64_t num_steps,
                std::vector<std::string> layer_names);

  [[nodiscard]] bool wants(int64_t step) const {
    return step >= first_step_ && step - first_step_ < num_steps_;
  }
  void add(const TraceSpan& span);
  /// Writes what was added since the last call and forgets it.
  void write(int64_t step);

 private:
  std::filesystem::path folder_;
  int rank_;
  int64_t first_step_;
  int64_t num_steps_;
  std::vector<std::string> layer_names_;
  std::vector<TraceSpan> spans_;
  int64_t num_left_out_ = 0;
};

/// Adds the time of its scope to a trace.
class TraceScope {
 public:
  /// recorder: null where nothing is traced. Both outlive the scope.
  TraceScope(TraceRecorder* recorder, const Clock& clock, TraceSpan span)
      : recorder_(recorder), clock_(clock), span_(span) {
    if (recorder_ != nullptr) span_.start = clock_.now();
  }
  ~TraceScope() {
    if (recorder_ == nullptr) return;
    span_.end = clock_.now();
    recorder_->add(span_);
  }
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;

 private:
  TraceRecorder* recorder_;
  const Clock& clock_;
  TraceSpan span_;
};

}  // namespace chiliad::observe
