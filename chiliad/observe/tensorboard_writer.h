#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "chiliad/base/clock.h"
#include "chiliad/io/file.h"
#include "chiliad/observe/event_record.h"
#include "chiliad/observe/metrics.h"

namespace chiliad::observe {

/// Writes the metrics of one start of a run as an event file of its own, which TensorBoard reads while it
/// grows. Values of earlier starts from `first_step` on are declared void, so that a step has one value.
/// Losing events must not lose a run: a failure is warned about once, and the rest goes on in another file.
/// Not thread-safe.
class TensorBoardWriter {
 public:
  /// first_step: of which values can come. The folder and the file are made by the first value. `clock`
  /// outlives the writer.
  TensorBoardWriter(std::filesystem::path folder, int64_t first_step, const Clock& clock);

  void add(const StepMetrics& metrics);
  void add(int64_t step, const Picture& picture);
  [[nodiscard]] int64_t num_lost() const { return num_lost_; }

 private:
  void append(std::string_view event, int64_t step);
  void open(int64_t step);

  std::filesystem::path folder_;
  int64_t next_void_;  // step that the next file's marker names
  const Clock& clock_;
  std::optional<io::File> file_;
  int64_t num_lost_ = 0;
};

/// The curves of a line of metrics: train/loss, time/forward (share of the wall time), ...
[[nodiscard]] std::vector<Scalar> scalars_of(const StepMetrics& metrics);

}  // namespace chiliad::observe
