#include "chiliad/supervise/launch/frames.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "chiliad/base/error.h"
#include "chiliad/base/error_kinds.h"
#include "chiliad/base/json_text.h"

namespace chiliad::supervise {
namespace {

using Json = nlohmann::json;

template <typename Read>
auto parse(const char* frame, const std::string& body, Read read) {
  try {
    return read(parse_json<Json>(body));
  } catch (const Json::exception& error) {
    throw CorruptData(frame, fmt::format("got '{:.80}' ({})", body, error.what()));
  }
}

LogLevel log_level(const std::string& name) {
  if (name == "debug") return LogLevel::kDebug;
  if (name == "warn") return LogLevel::kWarn;
  if (name == "error") return LogLevel::kError;
  return LogLevel::kInfo;
}

}  // namespace

SnapshotFrame read_snapshot_frame(const std::string& body) {
  return parse("snapshot frame", body, [](const Json& object) {
    return SnapshotFrame{object.at("step").get<int64_t>(), object.at("slot").get<int>()};
  });
}

FinishedFrame read_finished_frame(const std::string& body) {
  return parse("finished frame", body, [](const Json& object) {
    return FinishedFrame{object.at("step").get<int64_t>(), object.value("reason", "done")};
  });
}

WorkerError read_error_frame(const std::string& body) {
  return parse("error frame", body, [](const Json& object) {
    const auto place = object.value("place", "");
    const auto message = object.at("message").get<std::string>();
    return WorkerError{kind_from_name(object.value("kind", "internal")),
                       place.empty() ? message : place + ": " + message, object.value("step", int64_t{0}),
                       object.value("ranks", std::vector<int>{})};
  });
}

LogFrame read_log_frame(const std::string& body) {
  return parse("log frame", body, [](const Json& object) {
    return LogFrame{log_level(object.value("level", "info")), object.at("line").get<std::string>()};
  });
}

std::string slot_free_body(int slot, int64_t step, bool committed) {
  return json_text(Json{{"slot", slot}, {"step", step}, {"committed", committed}});
}

}  // namespace chiliad::supervise
