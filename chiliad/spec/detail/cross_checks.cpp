#include "chiliad/spec/detail/cross_checks.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <set>
#include <string>

#include "chiliad/spec/layer_table.h"

namespace chiliad::spec::detail {
namespace {

using Found = std::optional<Conflict>;

Found check_model(const ModelOptions& model) {
  if (model.width % model.heads != 0) {
    return Conflict{"model.width",
                    fmt::format("expected a multiple of model.heads ({}), got {}. Did you mean {}?",
                                model.heads, model.width, (model.width / model.heads + 1) * model.heads)};
  }
  const int64_t head_size = model.width / model.heads;
  if (head_size % 2 != 0) {
    return Conflict{"model.heads",
                    fmt::format("expected an even head size (model.width / model.heads), got {} / {} = "
                                "{}. Change one of them",
                                model.width, model.heads, head_size)};
  }
  return std::nullopt;
}

Found check_multiple(const char* key, int64_t value, int64_t step) {
  if (value % step == 0) return std::nullopt;
  return Conflict{key, fmt::format("expected a multiple of data.bucket_step ({}), got {}. Did you mean {}?",
                                   step, value, (value / step + 1) * step)};
}

Found check_buckets(const DataOptions& data, int64_t patch) {
  if (data.bucket_step % patch != 0) {
    return Conflict{"data.bucket_step",
                    fmt::format("expected a multiple of model.patch ({}), got {}. Did you mean {}?", patch,
                                data.bucket_step, (data.bucket_step / patch + 1) * patch)};
  }
  if (auto conflict = check_multiple("data.bucket_min", data.bucket_min, data.bucket_step)) return conflict;
  if (auto conflict = check_multiple("data.bucket_max", data.bucket_max, data.bucket_step)) return conflict;
  if (data.bucket_min > data.resolution) {
    return Conflict{"data.bucket_min",
                    fmt::format("expected at most data.resolution ({}), got {}. Change one of them",
                                data.resolution, data.bucket_min)};
  }
  if (data.bucket_max < data.resolution) {
    return Conflict{"data.bucket_max",
                    fmt::format("expected at least data.resolution ({}), got {}. Change one of them",
                                data.resolution, data.bucket_max)};
  }
  return std::nullopt;
}

/// Frozen components must be there, and leave something to train.
Found check_frozen(const RunFile& file) {
  std::set<std::string> components;
  for (const auto& layer : make_layer_table(file.model).layers) components.insert(layer.component);
  const std::string list = fmt::format("{}", fmt::join(components, ", "));
  for (const auto& name : file.optimizer.frozen) {
    if (components.contains(name)) continue;
    return Conflict{"optimizer.frozen", fmt::format("expected components of family {} ({}), got {}",
                                                    file.model.family, list, name)};
  }
  if (file.optimizer.frozen.size() < components.size()) return std::nullopt;
  return Conflict{"optimizer.frozen", fmt::format("expected at least one component to train of {}", list)};
}

/// Ranks must fill the dimensions.
Found check_layout(const ParallelOptions& parallel) {
  const int64_t share = parallel.dp_shard * parallel.tp;
  if (parallel.nproc % share == 0) return std::nullopt;
  return Conflict{"parallel.nproc",
                  fmt::format("expected a multiple of dp_shard x tp ({} x {} = {}), got {}. Did you mean {}?",
                              parallel.dp_shard, parallel.tp, share, parallel.nproc,
                              (parallel.nproc / share + 1) * share)};
}

}  // namespace

Found find_conflict(const RunFile& file) {
  if (auto conflict = check_model(file.model)) return conflict;
  if (auto conflict = check_layout(file.parallel)) return conflict;
  if (auto conflict = check_frozen(file)) return conflict;
  return check_buckets(file.data, file.model.patch);
}

}  // namespace chiliad::spec::detail
