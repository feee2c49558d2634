#include "tests/unit/text/tokenizer_json.h"

#include <nlohmann/json.hpp>

#include "chiliad/base/error.h"
#include "chiliad/base/json_text.h"
#include "chiliad/io/file.h"
#include "tests/support/temp_dir.h"

namespace chiliad::test {

nlohmann::json small_tokenizer() {
  return parse_json<nlohmann::json>(R"({
    "added_tokens": [{"id": 7, "content": "<end>", "special": true}],
    "normalizer": null,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
    "post_processor": {"type": "TemplateProcessing",
      "single": [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "<end>", "type_id": 0}}],
      "special_tokens": {"<end>": {"id": "<end>", "ids": [7], "tokens": ["<end>"]}}},
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "ab": 3, "bc": 4, "abc": 5, "\u0120": 6},
              "merges": ["b c", "a b", "a bc"]}})");
}

std::unique_ptr<text::Tokenizer> open_text(const std::string& json) {
  const TempDir folder;
  io::File file = io::File::create(folder.path() / "tokenizer.json");  // not durable, so quick
  file.write(json);
  file.close();
  return text::open_tokenizer(folder.path() / "tokenizer.json");
}

std::unique_ptr<text::Tokenizer> open_json(const nlohmann::json& json) {
  return open_text(json_text(json));
}

std::string refusal_of(const std::string& json) {
  try {
    (void)open_text(json);
    return {};
  } catch (const InvalidInput& error) {
    return error.what();
  }
}

std::string refusal_with(const char* pointer, const nlohmann::json& value) {
  nlohmann::json json = small_tokenizer();
  json[nlohmann::json::json_pointer(pointer)] = value;
  return refusal_of(json_text(json));
}

}  // namespace chiliad::test
