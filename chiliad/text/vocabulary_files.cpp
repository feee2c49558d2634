#include "chiliad/text/detail/vocabulary_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/base/json_text.h"
#include "chiliad/io/file.h"
#include "chiliad/text/detail/utf8.h"

namespace chiliad::text::detail {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int64_t kMaxVocabularyBytes = 64LL << 20;
constexpr int64_t kMaxConfigBytes = 16LL << 20;
constexpr const char* kConfigName = "tokenizer_config.json";
constexpr const char* kSpecialRoles[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                         "pad_token", "cls_token", "mask_token"};

/// Reads files and keeps their bytes for the digest.
class Reader {
 public:
  [[nodiscard]] std::string text(const fs::path& path, int64_t limit) {
    std::string read = io::read_text(path, limit);
    bytes_ += fmt::format("{} {}\n", path.filename().string(), read.size()) + read;
    std::string repaired;
    if (replace_broken(read, repaired))
      throw InvalidInput(path.string(), "expected UTF-8, got other bytes. Copy the file anew");
    return read;
  }
  /// Empty where there is no such file.
  [[nodiscard]] Json object_or_none(const fs::path& path) {
    return fs::exists(path) ? object(path, kMaxConfigBytes) : Json::object();
  }
  [[nodiscard]] Json object(const fs::path& path, int64_t limit) {
    Json json = try_parse_json<Json>(text(path, limit));
    if (!json.is_object())
      throw InvalidInput(path.string(), "expected a JSON object, got other text. Copy the file anew");
    return json;
  }
  [[nodiscard]] std::string take_bytes() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    if (line.ends_with('\r')) line.pop_back();
    lines.push_back(std::move(line));
    at = end + 1;
  }
  return lines;
}

/// tokenizer_config.json, as far as it says something.
class Config {
 public:
  Config(Json json, const fs::path& folder)
      : json_(std::move(json)), place_((folder / kConfigName).string()) {}

  [[nodiscard]] bool flag(const char* key, bool fallback) const {
    const Json* value = find(key);
    if (value == nullptr) return fallback;
    if (!value->is_boolean()) refuse(key, "true or false");
    return value->get<bool>();
  }
  [[nodiscard]] std::string text(const char* key, const char* fallback) const {
    const Json* value = find(key);
    if (value == nullptr) return fallback;
    if (!value->is_string()) refuse(key, "a string");
    return value->get<std::string>();
  }
  /// The content of a special token, which is a string or an object.
  [[nodiscard]] std::string token(const char* role, const char* fallback) const {
    const Json* value = find(role);
    if (value == nullptr) return fallback;
    return token_of(role, *value).at("content").get<std::string>();
  }
  /// The tokenizer's class without the ending of the quick ones; empty: not said.
  [[nodiscard]] std::string family() const {
    std::string name = text("tokenizer_class", "");
    if (name.ends_with("Fast")) name.resize(name.size() - 4);
    return name;
  }
  /// The special tokens by name, as a tokenizer.json has them but for the ids.
  [[nodiscard]] std::vector<Json> special_tokens() const {
    std::vector<Json> tokens;
    for (const char* role : kSpecialRoles) {
      if (const Json* value = find(role)) tokens.push_back(token_of(role, *value));
    }
    if (const Json* more = find("additional_special_tokens")) {
      if (!more->is_array()) refuse("additional_special_tokens", "an array");
      for (const Json& one : *more) tokens.push_back(token_of("additional_special_tokens", one));
    }
    return tokens;
  }
  /// added_tokens_decoder: tokens by id. Empty where there is none.
  [[nodiscard]] std::vector<Json> tokens_by_id() const {
    constexpr const char* kKey = "added_tokens_decoder";
    std::vector<Json> tokens;
    const Json* all = find(kKey);
    if (all == nullptr) return tokens;
    if (!all->is_object()) refuse(kKey, "an object");
    for (const auto& [id, value] : all->items()) {
      Json token = value;
      const bool is_number = !id.empty() && id.size() < 8 && id.find_first_not_of("0123456789") == id.npos;
      if (!token.is_object() || !is_number) refuse(kKey, "tokens by id");
      token["id"] = std::stoi(id);
      tokens.push_back(std::move(token));
    }
    return tokens;
  }
  [[noreturn]] void refuse(const char* key, const std::string& wanted) const {
    const auto found = json_.find(key);
    std::string got = found == json_.end() ? "nothing" : json_text(*found);
    if (got.size() > 60) got = got.substr(0, 60) + "...";
    throw InvalidInput(place_, fmt::format("{}: expected {}, got {}", key, wanted, got));
  }

 private:
  [[nodiscard]] const Json* find(const char* key) const {
    const auto found = json_.find(key);
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }
  [[nodiscard]] Json token_of(const char* role, const Json& value) const {
    if (value.is_string()) return {{"content", value}, {"special", true}, {"normalized", false}};
    if (!value.is_object() || !value.contains("content") || !value["content"].is_string())
      refuse(role, "a token");
    Json token = value;
    token["special"] = true;
    token.erase("__type");
    return token;
  }

  Json json_;
  std::string place_;
};

/// Those with ids, then those of added_tokens.json, then special tokens that the vocabulary has. A special
/// token without an id anywhere is in no text, as it would be in no embedding.
Json added_tokens(const Config& config, const std::vector<Json>& special, const Json& vocabulary,
                  const Json& more_ids) {
  std::vector<Json> added = config.tokens_by_id();
  std::map<std::string, bool> listed;
  for (const Json& token : added) listed[token.value("content", "")] = true;
  for (const auto& [content, id] : more_ids.items()) {
    if (std::exchange(listed[content], true)) continue;
    added.push_back({{"id", id}, {"content", content}, {"normalized", false}});
    for (const Json& one : special) {
      if (one.at("content") == content) added.back()["special"] = true;
    }
  }
  for (const Json& one : special) {
    const std::string content = one.at("content").get<std::string>();
    if (!vocabulary.contains(content) || std::exchange(listed[content], true)) continue;
    Json token = one;
    token["id"] = vocabulary.at(content);
    added.push_back(std::move(token));
  }
  return added;
}

Json plain_special(const std::string& content) {
  return {{"content", content}, {"special", true}, {"normalized", false}};
}

/// [content, id] of a token that frames texts.
Json frame_token(const Json& vocabulary, const std::string& content, const fs::path& path) {
  const auto found = vocabulary.find(content);
  if (found == vocabulary.end()) {
    throw InvalidInput(path.string(), fmt::format("expected the token '{}' that frames texts, got none. Take "
                                                  "tokenizer_config.json of the same model",
                                                  content));
  }
  return {content, *found};
}

Json byte_level_step(bool split) {
  return {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", split}};
}

Json split_step(const char* expression, const char* behavior, bool invert) {
  return {
      {"type", "Split"}, {"pattern", {{"Regex", expression}}}, {"behavior", behavior}, {"invert", invert}};
}

void make_clip(const Config& config, const fs::path& vocab, Json& json) {
  const std::string begin = config.token("bos_token", "<|startoftext|>");
  const std::string end = config.token("eos_token", "<|endoftext|>");
  const Json& vocabulary = json["model"]["vocab"];
  json["post_processor"] = {{"type", "RobertaProcessing"},
                            {"cls", frame_token(vocabulary, begin, vocab)},
                            {"sep", frame_token(vocabulary, end, vocab)}};
  json["model"]["end_of_word_suffix"] = "</w>";
  json["model"]["unk_token"] = config.token("unk_token", "<|endoftext|>");
  json["normalizer"] = {{"type", "Sequence"},
                        {"normalizers",
                         {{{"type", "NFC"}},
                          {{"type", "Replace"}, {"pattern", {{"Regex", R"(\s+)"}}}, {"content", " "}},
                          {{"type", "Lowercase"}}}}};
  json["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers",
       {split_step(R"('s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+)", "Removed", true),
        byte_level_step(true)}}};
  json["decoder"] = {{"type", "Sequence"},
                     {"decoders",
                      {{{"type", "ByteLevel"}},
                       {{"type", "Replace"}, {"pattern", {{"String", "</w>"}}}, {"content", " "}}}}};
}

void make_qwen2(Json& json) {
  constexpr const char* kSplit = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)"
                                 R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  json["normalizer"] = {{"type", "NFC"}};
  json["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers", {split_step(kSplit, "Isolated", false), byte_level_step(false)}}};
  json["decoder"] = {{"type", "ByteLevel"}};
}

void make_gpt2(const Config& config, Json& json) {
  json["pre_tokenizer"] = byte_level_step(true);
  json["pre_tokenizer"]["add_prefix_space"] = config.flag("add_prefix_space", false);
  json["decoder"] = {{"type", "ByteLevel"}};
}

Json merges_of(const std::string& text) {
  Json merges = Json::array();
  bool first = true;
  for (std::string& line : lines_of(text)) {
    const bool is_version = std::exchange(first, false) && line.starts_with("#version");
    if (!is_version && !line.empty()) merges.push_back(std::move(line));
  }
  return merges;
}

}  // namespace

OldFiles read_word_piece_files(const fs::path& vocab) {
  const fs::path folder = vocab.parent_path();
  Reader reader;
  Json vocabulary = Json::object();
  int32_t next = 0;
  for (std::string& line : lines_of(reader.text(vocab, kMaxVocabularyBytes))) vocabulary[line] = next++;
  const Config config(reader.object_or_none(folder / kConfigName), folder);
  if (!config.flag("do_basic_tokenize", true)) config.refuse("do_basic_tokenize", "true");

  Json json;
  json["normalizer"] = {{"type", "BertNormalizer"},
                        {"clean_text", true},
                        {"lowercase", config.flag("do_lower_case", true)},
                        {"handle_chinese_chars", config.flag("tokenize_chinese_chars", true)}};
  json["normalizer"]["strip_accents"] =
      config.flag("strip_accents", json["normalizer"]["lowercase"].get<bool>());
  json["pre_tokenizer"] = {{"type", "BertPreTokenizer"}};
  json["decoder"] = {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}};
  json["post_processor"] = {{"type", "BertProcessing"},
                            {"cls", frame_token(vocabulary, config.token("cls_token", "[CLS]"), vocab)},
                            {"sep", frame_token(vocabulary, config.token("sep_token", "[SEP]"), vocab)}};
  std::vector<Json> special = config.special_tokens();
  for (const char* name : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"})
    special.push_back(plain_special(name));
  json["added_tokens"] =
      added_tokens(config, special, vocabulary, reader.object_or_none(folder / "added_tokens.json"));
  json["model"] = {{"type", "WordPiece"},
                   {"unk_token", config.token("unk_token", "[UNK]")},
                   {"continuing_subword_prefix", "##"},
                   {"vocab", std::move(vocabulary)}};
  return {json_text(json), reader.take_bytes()};
}

OldFiles read_merges_files(const fs::path& vocab) {
  const fs::path folder = vocab.parent_path();
  Reader reader;
  Json json;
  json["model"] = {{"type", "BPE"},
                   {"vocab", reader.object(vocab, kMaxVocabularyBytes)},
                   {"merges", merges_of(reader.text(folder / "merges.txt", kMaxVocabularyBytes))}};
  const Config config(reader.object_or_none(folder / kConfigName), folder);
  std::vector<Json> special = config.special_tokens();
  const std::string family = config.family();
  if (family == "CLIPTokenizer" || (family.empty() && json["model"]["vocab"].contains("a</w>"))) {
    make_clip(config, vocab, json);
    for (const char* name : {"<|startoftext|>", "<|endoftext|>"}) special.push_back(plain_special(name));
  } else if (family == "Qwen2Tokenizer") {
    make_qwen2(json);
  } else if (family == "GPT2Tokenizer") {
    make_gpt2(config, json);
  } else {
    config.refuse("tokenizer_class", "CLIPTokenizer, GPT2Tokenizer or Qwen2Tokenizer beside a vocab.json");
  }
  json["added_tokens"] = added_tokens(config, special, json["model"]["vocab"],
                                      reader.object_or_none(folder / "added_tokens.json"));
  return {json_text(json), reader.take_bytes()};
}

PieceFrame read_piece_frame(const fs::path& folder) {
  Reader reader;
  const Config config(reader.object_or_none(folder / kConfigName), folder);
  const std::string family = config.family();
  PieceFrame frame;
  frame.begin = config.flag("add_bos_token", family == "LlamaTokenizer");
  frame.end = config.flag("add_eos_token", family == "T5Tokenizer");
  frame.bytes = reader.take_bytes();
  return frame;
}

}  // namespace chiliad::text::detail
