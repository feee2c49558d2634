#include "chiliad/spec/shape_stages.h"

#include <fmt/core.h>

#include "chiliad/spec/bucket_tables.h"

namespace chiliad::spec {

std::vector<DataOptions> stage_options(const DataOptions& data) {
  DataOptions ground = data;
  ground.stages.clear();
  std::vector<DataOptions> all{ground};
  const auto set = [](int64_t& value, int64_t own) {
    if (own != 0) value = own;
  };
  for (const ShapeStage& stage : data.stages) {
    DataOptions& options = all.emplace_back(ground);
    if (!stage.buckets.empty()) options.buckets = stage.buckets;
    set(options.resolution, stage.resolution);
    set(options.bucket_step, stage.bucket_step);
    set(options.bucket_min, stage.bucket_min);
    set(options.bucket_max, stage.bucket_max);
    set(options.micro_batch_items, stage.micro_batch_items);
  }
  return all;
}

DataOptions last_stage(const DataOptions& data) {
  return stage_options(data).back();
}

size_t stage_of(const DataOptions& data, int64_t step) {
  size_t stage = 0;
  while (stage < data.stages.size() && step >= data.stages[stage].from) ++stage;
  return stage;
}

std::string shapes_in_words(const DataOptions& stage) {
  if (!is_generated(stage.buckets)) return stage.buckets;
  return fmt::format("{} of about {} x {} pixels", stage.buckets, stage.resolution, stage.resolution);
}

}  // namespace chiliad::spec
