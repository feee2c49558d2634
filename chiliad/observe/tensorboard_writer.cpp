#include "chiliad/observe/tensorboard_writer.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/base/log.h"

namespace chiliad::observe {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kStem = "events.out.tfevents.";

/// Readers take the files of a folder in the order of their names: a later file has a later number, whatever
/// the clock says.
int64_t file_number(const fs::path& folder, int64_t seconds) {
  int64_t number = seconds;
  std::error_code unreadable;  // the file that is made next says more
  for (const auto& entry : fs::directory_iterator(folder, unreadable)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(kStem)) continue;
    int64_t earlier = -1;
    std::from_chars(name.data() + kStem.size(), name.data() + name.size(), earlier);
    number = std::max(number, earlier + 1);
  }
  return number;
}

}  // namespace

TensorBoardWriter::TensorBoardWriter(fs::path folder, int64_t first_step, const Clock& clock)
    : folder_(std::move(folder)), next_void_(first_step), clock_(clock) {}

void TensorBoardWriter::open(int64_t step) {
  io::make_folders(folder_);
  const double wall = to_seconds(clock_.wall());
  const auto name = fmt::format("{}{:010}.chiliad", kStem, file_number(folder_, static_cast<int64_t>(wall)));
  file_ = io::File::create(folder_ / name);
  file_->write(frame_record(version_event(wall)));
  file_->write(frame_record(restart_event(wall, std::min(next_void_, step))));
}

void TensorBoardWriter::append(std::string_view event, int64_t step) {
  try {
    if (!file_.has_value()) open(step);
    file_->write(frame_record(event));
    next_void_ = std::max(next_void_, step + 1);
  } catch (const Unavailable& error) {
    file_.reset();  // half a record may stand at its end, behind which nothing can be read
    if (num_lost_++ == 0)
      log_warn("{}. The run goes on; TensorBoard shows less of it meanwhile", error.what());
  }
}

void TensorBoardWriter::add(const StepMetrics& metrics) {
  append(scalars_event(to_seconds(clock_.wall()), metrics.step, scalars_of(metrics)), metrics.step);
}

void TensorBoardWriter::add(int64_t step, const Picture& picture) {
  append(picture_event(to_seconds(clock_.wall()), step, picture), step);
}

std::vector<Scalar> scalars_of(const StepMetrics& metrics) {
  std::vector<Scalar> scalars{{"train/loss", metrics.loss},
                              {"train/grad_norm", metrics.grad_norm},
                              {"train/lr", metrics.lr},
                              {"train/epoch", static_cast<double>(metrics.epoch)},
                              {"speed/items_per_s", metrics.items_per_s},
                              {"data/bad_items", static_cast<double>(metrics.bad_items)},
                              {"data/imbalance", metrics.imbalance}};
  if (metrics.validation_loss.has_value())
    scalars.push_back({"train/validation_loss", *metrics.validation_loss});
  for (size_t bin = 0; bin < metrics.validation_loss_by_time.size(); ++bin)
    scalars.push_back(
        {fmt::format("validation/loss_at_times_{}_of_{}", bin + 1, metrics.validation_loss_by_time.size()),
         metrics.validation_loss_by_time[bin]});
  if (metrics.mfu.has_value()) scalars.push_back({"speed/mfu", *metrics.mfu});
  if (metrics.peak_memory > 0)
    scalars.push_back({"memory/peak_bytes", static_cast<double>(metrics.peak_memory)});
  if (metrics.wall <= 0.0) return scalars;
  scalars.push_back({"speed/flops_per_s", metrics.flops / metrics.wall});
  for (int row = 0; row < kNumRows; ++row) {
    scalars.push_back({std::string("time/") + row_name(static_cast<Row>(row)),
                       metrics.seconds[static_cast<size_t>(row)] / metrics.wall});
  }
  scalars.push_back({"time/other", metrics.other / metrics.wall});
  for (const auto& [name, seconds] : metrics.components) {
    scalars.push_back({"component/" + name, (seconds.forward + seconds.backward) / metrics.wall});
  }
  return scalars;
}

}  // namespace chiliad::observe
