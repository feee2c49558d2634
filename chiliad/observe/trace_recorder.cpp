#include "chiliad/observe/trace_recorder.h"

#include <fmt/core.h>

#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/base/json_text.h"
#include "chiliad/base/log.h"
#include "chiliad/io/file.h"

namespace chiliad::observe {
namespace {

using Json = nlohmann::ordered_json;

double micros(Nanoseconds time) {
  return static_cast<double>(time.count()) * 1e-3;
}

Json name_event(const char* what, int rank, int track, const std::string& name) {
  return {{"name", what}, {"ph", "M"}, {"pid", rank}, {"tid", track}, {"args", {{"name", name}}}};
}

}  // namespace

TraceRecorder::TraceRecorder(std::filesystem::path folder, int rank, int64_t first_step, int64_t num_steps,
                             std::vector<std::string> layer_names)
    : folder_(std::move(folder)),
      rank_(rank),
      first_step_(first_step),
      num_steps_(num_steps),
      layer_names_(std::move(layer_names)) {}

void TraceRecorder::add(const TraceSpan& span) {
  if (spans_.size() < kMaxSpans) {
    spans_.push_back(span);
  } else {
    ++num_left_out_;
  }
}

void TraceRecorder::write(int64_t step) {
  const auto spans = std::exchange(spans_, {});
  Json events = Json::array();
  events.push_back(name_event("process_name", rank_, 0, fmt::format("rank {}", rank_)));
  std::map<std::string, int> tracks;
  int64_t number = 0;
  for (const auto& span : spans) {
    const auto [it, is_new] = tracks.emplace(span.track, static_cast<int>(tracks.size()) + 1);
    if (is_new) events.push_back(name_event("thread_name", rank_, it->second, span.track));
    const bool has_layer = span.layer >= 0 && static_cast<size_t>(span.layer) < layer_names_.size();
    std::string name = span.name;
    if (has_layer) name += " " + layer_names_[static_cast<size_t>(span.layer)];
    Json event{{"name", std::move(name)}, {"cat", span.name}, {"pid", rank_}, {"tid", it->second}};
    event["ts"] = micros(span.start);
    event["args"] = {{"step", step}};
    if (span.layer >= 0) event["args"]["layer"] = span.layer;
    if (span.slot >= 0) event["args"]["slot"] = span.slot;
    if (!span.overlaps) {
      event["ph"] = "X";
      event["dur"] = micros(span.end - span.start);
      events.push_back(std::move(event));
      continue;
    }
    event["ph"] = "b";
    event["id"] = number++;
    events.push_back(event);
    event["ph"] = "e";
    event["ts"] = micros(span.end);
    event.erase("args");
    events.push_back(std::move(event));
  }
  const Json page{
      {"displayTimeUnit", "ms"},
      {"traceEvents", std::move(events)},
      {"otherData", {{"step", step}, {"rank", rank_}, {"left_out", std::exchange(num_left_out_, 0)}}}};
  try {
    io::make_folders(folder_);
    io::write_atomic(folder_ / fmt::format("step-{}-rank-{}.json", step, rank_), json_text(page));
  } catch (const Unavailable& error) {
    log_warn("{}. The run goes on without the trace of step {}", error.what(), step);
  }
}

}  // namespace chiliad::observe
