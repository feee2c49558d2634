#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "chiliad/base/error.h"
#include "chiliad/base/json_text.h"
#include "chiliad/stepplan/plan.h"

namespace chiliad::stepplan {

std::string Cursor::to_json() const {
  nlohmann::ordered_json json{{"version", version}, {"data", data.hex()},     {"content", content.hex()},
                              {"seed", seed},       {"next_step", next_step}, {"journal", journal.hex()}};
  for (const SourceIdentity& source : sources)
    json["sources"].push_back({{"name", source.name}, {"data", source.data.hex()}});
  return json_text(json);
}

Cursor Cursor::from_json(const std::string& text) {
  try {
    const auto json = parse_json<nlohmann::json>(text);
    Cursor cursor;
    cursor.version = json.at("version").get<int>();
    if (cursor.version != 1) {
      throw CorruptData("cursor", fmt::format("version: expected 1, got {}", cursor.version));
    }
    cursor.data = Digest::from_hex(json.at("data").get<std::string>());
    cursor.content = Digest::from_hex(json.at("content").get<std::string>());
    cursor.seed = json.at("seed").get<uint64_t>();
    cursor.next_step = json.at("next_step").get<int64_t>();
    cursor.journal = Digest::from_hex(json.at("journal").get<std::string>());
    for (const auto& source : json.value("sources", nlohmann::json::array())) {
      cursor.sources.push_back(
          {source.at("name").get<std::string>(), Digest::from_hex(source.at("data").get<std::string>())});
    }
    if (cursor.next_step < 0) {
      throw CorruptData("cursor", fmt::format("next_step: expected at least 0, got {}", cursor.next_step));
    }
    return cursor;
  } catch (const nlohmann::json::exception& error) {
    throw CorruptData("cursor", fmt::format("expected a cursor as JSON: {}", error.what()));
  }
}

}  // namespace chiliad::stepplan
