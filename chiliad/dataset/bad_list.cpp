#include "chiliad/dataset/bad_list.h"

#include <nlohmann/json.hpp>
#include <sstream>

#include "chiliad/base/json_text.h"
#include "chiliad/io/file.h"

namespace chiliad::dataset {

using Json = nlohmann::ordered_json;

void write_bad_list(const std::filesystem::path& path, const std::vector<BadSample>& bad) {
  std::string text;
  for (const BadSample& sample : bad) {
    const Json line{{"key", sample.key}, {"file", sample.file}, {"reason", sample.reason}};
    text += json_text_replacing(line) + "\n";
  }
  io::write_atomic(path, text);
}

std::optional<std::vector<BadSample>> read_bad_list(const std::filesystem::path& path) {
  constexpr int64_t kMaxBytes = 1LL << 30;
  const auto stamp = io::stat_file(path);
  if (!stamp.has_value() || stamp->size > kMaxBytes) return std::nullopt;
  std::vector<BadSample> bad;
  std::istringstream lines(io::read_text(path, kMaxBytes));
  for (std::string line; std::getline(lines, line);) {
    const Json json = try_parse_json<Json>(line);
    if (!json.is_object()) return std::nullopt;
    bad.push_back({json.value("key", ""), json.value("file", ""), json.value("reason", "")});
  }
  return bad;
}

}  // namespace chiliad::dataset
