#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace chiliad::weights::detail {

using OrderedJson = nlohmann::ordered_json;

/// The text of a config.json of `owner` ("an AutoencoderKL"), at most 1 MiB. Throws InvalidInput.
[[nodiscard]] std::string read_config_text(const std::filesystem::path& path, std::string_view owner);
/// Throws CorruptData with `place` where it is not JSON or an object has a key twice: which one counts is not
/// known.
void refuse_double_keys(std::string_view text, const std::string& place);
/// Throws InvalidInput with `place` unless it is a JSON object; CorruptData as refuse_double_keys.
[[nodiscard]] OrderedJson parse_config(std::string_view text, const std::string& place);

/// Reads keys of a diffusers config.json and remembers which; what stays is unknown. A value of null is one
/// that is not there. Every failure is InvalidInput with `place` and the key. Not thread-safe.
class ConfigReader {
 public:
  /// `json` outlives it.
  ConfigReader(const OrderedJson& json, std::string place) : json_(json), place_(std::move(place)) {}

  [[noreturn]] void refuse(const std::string& key, const std::string& expected, const std::string& got,
                           const std::string& advice) const;
  /// Null where there is none.
  [[nodiscard]] const OrderedJson* find(const char* key);

  /// An integer of at least 1.
  [[nodiscard]] std::optional<int64_t> count(const char* key);
  [[nodiscard]] int64_t needed_count(const char* key);
  [[nodiscard]] std::optional<double> number(const char* key);
  [[nodiscard]] std::optional<double> positive_number(const char* key);
  [[nodiscard]] std::optional<bool> flag(const char* key);
  [[nodiscard]] std::string text(const char* key, const std::string& otherwise);
  /// Each at least `least`, which is not negative; a list of counts (least 1) has at least one.
  [[nodiscard]] std::vector<int64_t> integers(const char* key, int64_t least, std::vector<int64_t> otherwise);

  /// The value, where there is one, must be `only`.
  void only(const char* key, const OrderedJson& only);
  void only_null(const char* key, const char* advice = "Others are not built");
  /// Does not change what the network computes here.
  void ignore(const char* key) { seen_.insert(key); }
  /// Refuses keys that nothing has read. owner: "AutoencoderKL".
  void finish(std::string_view owner);

 private:
  const OrderedJson& json_;
  std::string place_;
  std::set<std::string, std::less<>> seen_;
};

}  // namespace chiliad::weights::detail
