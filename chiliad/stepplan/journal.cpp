#include "chiliad/stepplan/journal.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "chiliad/base/error.h"

namespace chiliad::stepplan {

void Journal::add(const Amendment& amendment) {
  if (!bad_from_.emplace(amendment.sample, amendment.from_step).second) return;
  amendments_.push_back(amendment);
}

float Journal::weight(int64_t sample, int64_t step) const {
  const auto found = bad_from_.find(sample);
  return found != bad_from_.end() && step >= found->second ? 0.0F : 1.0F;
}

Digest Journal::digest() const {
  Hasher hasher;
  hasher.add("journal").add(static_cast<int64_t>(amendments_.size()));
  for (const Amendment& amendment : amendments_) {
    hasher.add(amendment.from_step).add(amendment.sample).add(amendment.reason);
  }
  return hasher.digest();
}

std::string Journal::to_jsonl() const {
  std::string text;
  for (const Amendment& amendment : amendments_) {
    const nlohmann::ordered_json line{
        {"from_step", amendment.from_step}, {"sample", amendment.sample}, {"reason", amendment.reason}};
    text += line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  }
  return text;
}

Journal Journal::from_jsonl(const std::string& text) {
  Journal journal;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    try {
      const auto json = nlohmann::json::parse(line);
      journal.add({json.at("from_step").get<int64_t>(), json.at("sample").get<int64_t>(),
                   json.at("reason").get<std::string>()});
    } catch (const nlohmann::json::exception& error) {
      throw CorruptData(fmt::format("journal:{}", number), fmt::format("expected an amendment, got '{}' ({})",
                                                                       line.substr(0, 80), error.what()));
    }
  }
  return journal;
}

}  // namespace chiliad::stepplan
