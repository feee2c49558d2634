#include "chiliad/observe/metrics.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "chiliad/base/error.h"
#include "chiliad/base/json_text.h"

namespace chiliad::observe {
namespace {

using Json = nlohmann::ordered_json;

void read(const Json& object, const char* key, double& out) {
  const auto it = object.find(key);
  if (it == object.end()) return;
  out = it->is_null() ? std::numeric_limits<double>::quiet_NaN() : it->get<double>();
}

template <typename Integer>
void read_integer(const Json& object, const char* key, Integer& out) {
  const auto it = object.find(key);
  if (it != object.end()) out = it->get<Integer>();
}

void read_map(const Json& object, const char* key, std::map<std::string, int64_t>& out) {
  const auto it = object.find(key);
  if (it != object.end()) out = it->get<std::map<std::string, int64_t>>();
}

Json loader_json(const LoaderMetrics& loader) {
  return {{"threads", loader.threads},
          {"prefetch_steps", loader.prefetch_steps},
          {"tuner_changes", loader.tuner_changes},
          {"bytes", loader.bytes},
          {"slow_items", loader.slow_items},
          {"wait_alarms", loader.wait_alarms},
          {"bottleneck", loader.bottleneck}};
}

LoaderMetrics read_loader(const Json& object) {
  LoaderMetrics loader;
  read_integer(object, "threads", loader.threads);
  read_integer(object, "prefetch_steps", loader.prefetch_steps);
  read_integer(object, "tuner_changes", loader.tuner_changes);
  read_integer(object, "bytes", loader.bytes);
  read_integer(object, "slow_items", loader.slow_items);
  read_integer(object, "wait_alarms", loader.wait_alarms);
  loader.bottleneck = object.value("bottleneck", std::string());
  return loader;
}

Json components_json(const ComponentSeconds& components) {
  Json object = Json::object();
  for (const auto& [name, seconds] : components)
    object[name] = {{"forward", seconds.forward}, {"backward", seconds.backward}};
  return object;
}

ComponentSeconds read_components(const Json& object) {
  ComponentSeconds components;
  for (const auto& [name, seconds] : object.items()) {
    read(seconds, "forward", components[name].forward);
    read(seconds, "backward", components[name].backward);
  }
  return components;
}

}  // namespace

std::string StepMetrics::to_json() const {
  Json object{
      {"step", step},           {"steps", steps}, {"epoch", epoch}, {"rank", rank},           {"loss", loss},
      {"grad_norm", grad_norm}, {"lr", lr},       {"items", items}, {"bad_items", bad_items}, {"wall", wall}};
  Json rows = Json::object();
  for (int row = 0; row < kNumRows; ++row) {
    rows[row_name(static_cast<Row>(row))] = seconds[static_cast<size_t>(row)];
  }
  rows["other"] = other;
  object["seconds"] = std::move(rows);
  if (!components.empty()) object["component_seconds"] = components_json(components);
  object["cpu"] = cpu;
  object["sent"] = sent;
  object["sent_by_tier"] = sent_by_tier;
  object["imbalance"] = imbalance;
  object["items_per_s"] = items_per_s;
  object["flops"] = flops;
  object["peak_memory"] = peak_memory;
  if (loader.has_value()) object["loader"] = loader_json(*loader);
  if (validation_loss.has_value()) object["validation_loss"] = *validation_loss;
  if (!validation_loss_by_time.empty()) object["validation_loss_by_time"] = validation_loss_by_time;
  if (peak_flops > 0.0) object["peak_flops"] = peak_flops;
  if (mfu.has_value()) object["mfu"] = *mfu;
  return json_text(object);
}

StepMetrics StepMetrics::from_json(const std::string& text) {
  StepMetrics metrics;
  try {
    const Json object = parse_json<Json>(text);
    read_integer(object, "step", metrics.step);
    read_integer(object, "steps", metrics.steps);
    read_integer(object, "epoch", metrics.epoch);
    read_integer(object, "rank", metrics.rank);
    read(object, "loss", metrics.loss);
    read(object, "grad_norm", metrics.grad_norm);
    read(object, "lr", metrics.lr);
    read_integer(object, "items", metrics.items);
    read_integer(object, "bad_items", metrics.bad_items);
    read(object, "wall", metrics.wall);
    if (object.contains("seconds")) {
      for (int row = 0; row < kNumRows; ++row) {
        read(object["seconds"], row_name(static_cast<Row>(row)), metrics.seconds[static_cast<size_t>(row)]);
      }
      read(object["seconds"], "other", metrics.other);
    }
    if (object.contains("component_seconds"))
      metrics.components = read_components(object["component_seconds"]);
    read(object, "cpu", metrics.cpu);
    read_map(object, "sent", metrics.sent);
    read_map(object, "sent_by_tier", metrics.sent_by_tier);
    read(object, "imbalance", metrics.imbalance);
    read(object, "items_per_s", metrics.items_per_s);
    read(object, "flops", metrics.flops);
    read_integer(object, "peak_memory", metrics.peak_memory);
    read(object, "peak_flops", metrics.peak_flops);
    if (object.contains("loader")) metrics.loader = read_loader(object["loader"]);
    if (object.contains("validation_loss"))
      read(object, "validation_loss", metrics.validation_loss.emplace());
    if (object.contains("validation_loss_by_time")) {
      for (const auto& loss : object["validation_loss_by_time"])
        metrics.validation_loss_by_time.push_back(loss.is_null() ? std::numeric_limits<double>::quiet_NaN()
                                                                 : loss.get<double>());
    }
    if (object.contains("mfu")) read(object, "mfu", metrics.mfu.emplace());
  } catch (const nlohmann::json::exception& error) {
    throw CorruptData("metrics line", fmt::format("expected a JSON object of numbers, got '{:.80}' ({})",
                                                  text, error.what()));
  }
  return metrics;
}

}  // namespace chiliad::observe
