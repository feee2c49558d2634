#include "chiliad/stepplan/journal.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "chiliad/base/error.h"
#include "chiliad/base/json_text.h"

namespace chiliad::stepplan {

void Journal::add(const Amendment& amendment) {
  if (!by_sample_.emplace(amendment.sample, amendments_.size()).second) return;
  amendments_.push_back(amendment);
}

float Journal::weight(int64_t sample, int64_t step) const {
  const auto found = by_sample_.find(sample);
  return found != by_sample_.end() && step >= amendments_[found->second].from_step ? 0.0F : 1.0F;
}

const Amendment* Journal::found_in(int64_t sample, int64_t step) const {
  const auto found = by_sample_.find(sample);
  if (found == by_sample_.end()) return nullptr;
  const Amendment& amendment = amendments_[found->second];
  return amendment.from_step == step + 1 ? &amendment : nullptr;
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
    nlohmann::ordered_json line{
        {"from_step", amendment.from_step}, {"sample", amendment.sample}, {"reason", amendment.reason}};
    if (!amendment.found_at.empty()) line["found_at"] = amendment.found_at;
    text += json_text_replacing(line) + "\n";
  }
  return text;
}

Journal Journal::from_jsonl(const std::string& text) {
  Journal journal;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    try {
      const auto json = parse_json<nlohmann::json>(line);
      journal.add({json.at("from_step").get<int64_t>(), json.at("sample").get<int64_t>(),
                   json.at("reason").get<std::string>(), json.value("found_at", std::string())});
    } catch (const nlohmann::json::exception& error) {
      throw CorruptData(fmt::format("journal:{}", number), fmt::format("expected an amendment, got '{}' ({})",
                                                                       line.substr(0, 80), error.what()));
    }
  }
  return journal;
}

}  // namespace chiliad::stepplan
