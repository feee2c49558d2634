#include "chiliad/text/detail/tokenizer_file.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <unordered_set>

#include "chiliad/base/error.h"
#include "chiliad/text/detail/unicode.h"
#include "chiliad/text/detail/utf8.h"

namespace chiliad::text::detail {
namespace {

using Json = nlohmann::json;

constexpr int kMaxDepth = 32;
constexpr int64_t kMaxIds = 1 << 22;
constexpr size_t kMaxAddedBytes = 1024;  // of one content: bounds the time of the search
constexpr size_t kMaxSteps = 32;
constexpr const char* kGpt2Split =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

/// A value of the file and the way to it.
class Part {
 public:
  Part(const Json* json, std::string file, std::string path)
      : json_(json), file_(std::move(file)), path_(std::move(path)) {}

  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] std::string place() const { return path_.empty() ? file_ : file_ + ": " + path_; }
  [[noreturn]] void refuse(const std::string& message) const { throw InvalidInput(place(), message); }
  [[noreturn]] void expected(const char* what) const {
    std::string got =
        json_ == nullptr ? "nothing" : json_->dump(-1, ' ', true, Json::error_handler_t::replace);
    if (got.size() > 60) got = got.substr(0, 60) + "...";
    refuse(fmt::format("expected {}, got {}", what, got));
  }

  [[nodiscard]] bool absent() const { return json_ == nullptr || json_->is_null(); }
  /// May be absent.
  [[nodiscard]] Part member(const std::string& name) const {
    if (json_ == nullptr || !json_->is_object()) expected("an object");
    const auto found = json_->find(name);
    return {found == json_->end() ? nullptr : &*found, file_, path_.empty() ? name : path_ + "." + name};
  }
  [[nodiscard]] std::vector<Part> elements(size_t limit) const {
    if (json_ == nullptr || !json_->is_array()) expected("an array");
    if (json_->size() > limit)
      refuse(fmt::format("expected at most {} elements, got {}", limit, json_->size()));
    std::vector<Part> parts;
    parts.reserve(json_->size());
    for (size_t i = 0; i < json_->size(); ++i) parts.push_back(element(i));
    return parts;
  }
  [[nodiscard]] const Json& object() const {
    if (json_ == nullptr || !json_->is_object()) expected("an object");
    return *json_;
  }
  [[nodiscard]] const Json& array() const {
    if (json_ == nullptr || !json_->is_array()) expected("an array");
    return *json_;
  }
  [[nodiscard]] Part element(size_t i) const {
    return {&(*json_)[i], file_, fmt::format("{}[{}]", path_, i)};
  }
  [[nodiscard]] std::string text() const {
    if (json_ == nullptr || !json_->is_string()) expected("a string");
    return json_->get<std::string>();
  }
  [[nodiscard]] std::string text_or(const char* fallback) const { return absent() ? fallback : text(); }
  [[nodiscard]] bool flag(bool fallback) const {
    if (absent()) return fallback;
    if (!json_->is_boolean()) expected("true or false");
    return json_->get<bool>();
  }
  [[nodiscard]] int64_t number(int64_t limit) const {
    const bool fits = json_ != nullptr && json_->is_number_integer() &&
                      (!json_->is_number_unsigned() || json_->get<uint64_t>() < static_cast<uint64_t>(limit));
    const int64_t value = fits ? json_->get<int64_t>() : -1;
    if (value < 0 || value >= limit) expected(fmt::format("an integer from 0 to {}", limit - 1).c_str());
    return value;
  }
  [[nodiscard]] int32_t id() const { return static_cast<int32_t>(number(kMaxIds)); }

 private:
  const Json* json_;
  std::string file_;
  std::string path_;
};

[[noreturn]] void not_covered(const Part& part, const std::string& what) {
  part.refuse(
      fmt::format("{} is not covered yet. Covered: BPE models of the GPT-2, Llama-3, Qwen2, CLIP and "
                  "Llama-2 kinds, WordPiece models of BERT, Unigram models of T5",
                  what));
}

Json parse_json(std::string_view text, const std::string& place) {
  const auto watch_depth = [&](int depth, Json::parse_event_t, Json&) {
    if (depth <= kMaxDepth) return true;
    throw InvalidInput(place, fmt::format("expected nesting of at most {}, got more", kMaxDepth));
  };
  try {
    return Json::parse(text, watch_depth);
  } catch (const Json::exception& error) {
    throw InvalidInput(
        place, fmt::format("expected the JSON of a tokenizer, got {}. Copy the file anew", error.what()));
  }
}

/// The steps of a "Sequence" in `name`, or the one step; none where it is null.
std::vector<Part> steps_of(const Part& part, const char* name) {
  std::vector<Part> steps;
  if (part.absent()) return steps;
  if (part.member("type").text() != "Sequence") return {part};
  for (const Part& element : part.member(name).elements(kMaxSteps)) {
    for (const Part& step : steps_of(element, name)) steps.push_back(step);
    if (steps.size() > kMaxSteps) part.refuse(fmt::format("expected at most {} steps, got more", kMaxSteps));
  }
  return steps;
}

Pattern pattern_of(const Part& part) {
  const Part literal = part.member("String");
  if (!literal.absent()) return Pattern::literal(literal.text());
  const Part regex = part.member("Regex");
  if (regex.absent()) part.expected("{\"String\": ...} or {\"Regex\": ...}");
  return Pattern::regex(regex.text(), regex.place());
}

std::vector<AddedToken> added_of(const Part& part) {
  std::vector<AddedToken> added;
  if (part.absent()) return added;
  for (const Part& element : part.elements(kMaxIds)) {
    AddedToken token;
    token.id = element.member("id").id();
    token.content = element.member("content").text();
    token.single_word = element.member("single_word").flag(false);
    token.lstrip = element.member("lstrip").flag(false);
    token.rstrip = element.member("rstrip").flag(false);
    token.special = element.member("special").flag(false);
    token.normalized = element.member("normalized").flag(!token.special);
    if (token.content.empty() || token.content.size() > kMaxAddedBytes) {
      element.refuse(
          fmt::format("content: expected 1 to {} bytes, got {}", kMaxAddedBytes, token.content.size()));
    }
    added.push_back(std::move(token));
  }
  return added;
}

NormalizerStep normalizer_of(const Part& part) {
  using Kind = NormalizerStep::Kind;
  static const std::map<std::string, Kind> kPlain{{"NFC", Kind::kNfc},
                                                  {"NFD", Kind::kNfd},
                                                  {"NFKC", Kind::kNfkc},
                                                  {"NFKD", Kind::kNfkd},
                                                  {"Lowercase", Kind::kLowercase}};
  const std::string type = part.member("type").text();
  NormalizerStep step;
  if (const auto plain = kPlain.find(type); plain != kPlain.end()) {
    step.kind = plain->second;
  } else if (type == "Prepend") {
    step.kind = Kind::kPrepend;
    step.content = part.member("prepend").text();
  } else if (type == "Replace") {
    step.kind = Kind::kReplace;
    step.pattern = pattern_of(part.member("pattern"));
    step.content = part.member("content").text();
  } else if (type == "Strip") {
    step.kind = Kind::kStrip;
    step.left = part.member("strip_left").flag(true);
    step.right = part.member("strip_right").flag(true);
  } else if (type == "StripAccents") {
    step.kind = Kind::kStripAccents;
  } else if (type == "Precompiled") {
    step.kind = Kind::kPrecompiled;
    const Part map = part.member("precompiled_charsmap");
    const auto bytes = from_base64(map.text());
    if (!bytes) map.expected("base64");
    step.charsmap = std::make_shared<const Charsmap>(*bytes, part.place());
  } else if (type == "BertNormalizer") {
    step.kind = Kind::kBert;
    step.clean = part.member("clean_text").flag(true);
    step.space_chinese = part.member("handle_chinese_chars").flag(true);
    step.lowercase = part.member("lowercase").flag(true);
    step.strip_accents = part.member("strip_accents").flag(step.lowercase);
  } else {
    not_covered(part, "a normalizer of type " + type);
  }
  return step;
}

SplitBehavior behavior_of(const Part& part) {
  static const std::map<std::string, SplitBehavior> kNames{
      {"Removed", SplitBehavior::kRemoved},
      {"Isolated", SplitBehavior::kIsolated},
      {"MergedWithPrevious", SplitBehavior::kMergedWithPrevious},
      {"MergedWithNext", SplitBehavior::kMergedWithNext},
      {"Contiguous", SplitBehavior::kContiguous}};
  const auto found = kNames.find(part.text());
  if (found == kNames.end()) part.expected("the name of a split behavior");
  return found->second;
}

std::string replacement_of(const Part& part) {
  const Part replacement = part.member("replacement");
  std::string text = replacement.text_or("\xE2\x96\x81");
  if (text.empty() || next_character(text).length != text.size()) replacement.expected("one character");
  return text;
}

PrependScheme prepend_of(const Part& part) {
  const Part scheme = part.member("prepend_scheme");
  if (scheme.absent())  // files before the scheme had a flag
    return part.member("add_prefix_space").flag(true) ? PrependScheme::kAlways : PrependScheme::kNever;
  const std::string name = scheme.text();
  if (name == "always") return PrependScheme::kAlways;
  if (name == "first") return PrependScheme::kFirst;
  if (name == "never") return PrependScheme::kNever;
  scheme.expected("always, first or never");
}

/// Spaces go, each sign of punctuation is a word.
std::vector<PreTokenizerStep> bert_pre_tokenizer(const Part& part) {
  std::vector<PreTokenizerStep> steps(2);
  steps[0].pattern = Pattern::regex(R"(\s)", part.place());
  steps[0].behavior = SplitBehavior::kRemoved;
  steps[1].pattern = Pattern::regex(punctuation_class(), part.place());
  return steps;
}

PreTokenizerStep pre_tokenizer_of(const Part& part) {
  using Kind = PreTokenizerStep::Kind;
  const std::string type = part.member("type").text();
  PreTokenizerStep step;
  if (type == "Split") {
    step.kind = Kind::kSplit;
    step.pattern = pattern_of(part.member("pattern"));
    step.behavior = behavior_of(part.member("behavior"));
    step.invert = part.member("invert").flag(false);
  } else if (type == "ByteLevel") {
    step.kind = Kind::kByteLevel;
    step.add_prefix_space = part.member("add_prefix_space").flag(true);
    step.split = part.member("use_regex").flag(true);
    if (step.split) step.pattern = Pattern::regex(kGpt2Split, part.place());
  } else if (type == "Metaspace") {
    step.kind = Kind::kMetaspace;
    step.replacement = replacement_of(part);
    step.prepend = prepend_of(part);
    step.split = part.member("split").flag(true);
    step.pattern = Pattern::literal(step.replacement);
  } else {
    not_covered(part, "a pre-tokenizer of type " + type);
  }
  return step;
}

DecoderStep decoder_of(const Part& part) {
  using Kind = DecoderStep::Kind;
  const std::string type = part.member("type").text();
  DecoderStep step;
  if (type == "ByteLevel") {
    step.kind = Kind::kByteLevel;
  } else if (type == "ByteFallback") {
    step.kind = Kind::kByteFallback;
  } else if (type == "Fuse") {
    step.kind = Kind::kFuse;
  } else if (type == "Replace") {
    step.kind = Kind::kReplace;
    step.pattern = pattern_of(part.member("pattern"));
    step.content = part.member("content").text();
  } else if (type == "Strip") {
    step.kind = Kind::kStrip;
    step.content = part.member("content").text();
    step.start = part.member("start").number(kMaxIds);
    step.stop = part.member("stop").number(kMaxIds);
    if (step.content.empty() || next_character(step.content).length != step.content.size())
      part.member("content").expected("one character");
  } else if (type == "WordPiece") {
    step.kind = Kind::kWordPiece;
    step.content = part.member("prefix").text_or("##");
    step.clean_up = part.member("cleanup").flag(true);
  } else if (type == "Metaspace") {
    step.kind = Kind::kMetaspace;
    step.content = replacement_of(part);
    step.drop_first = prepend_of(part) != PrependScheme::kNever;
  } else {
    not_covered(part, "a decoder of type " + type);
  }
  return step;
}

std::vector<int32_t> ids_of(const Part& token) {
  std::vector<int32_t> ids;
  for (const Part& id : token.member("ids").elements(64)) ids.push_back(id.id());
  return ids;
}

Frame template_of(const Part& part) {
  Frame frame;
  bool behind = false;
  for (const Part& piece : part.member("single").elements(64)) {
    const Part sequence = piece.member("Sequence");
    if (!sequence.absent()) {
      if (behind || sequence.member("id").text() != "A") sequence.expected("the sequence A, once");
      behind = true;
      continue;
    }
    const Part special = piece.member("SpecialToken");
    if (special.absent()) piece.expected("{\"Sequence\": ...} or {\"SpecialToken\": ...}");
    const Part token = part.member("special_tokens").member(special.member("id").text());
    if (token.absent()) special.expected("a token of special_tokens");
    auto& side = behind ? frame.after : frame.before;
    for (const int32_t id : ids_of(token)) side.push_back(id);
  }
  if (!behind) part.member("single").expected("the sequence A, once");
  return frame;
}

int32_t pair_id(const Part& part) {
  const auto elements = part.elements(2);
  if (elements.size() != 2) part.expected("[content, id]");
  return elements[1].id();
}

Frame frame_of(const Part& part) {
  Frame frame;
  for (const Part& step : steps_of(part, "processors")) {
    const std::string type = step.member("type").text();
    if (type == "ByteLevel") continue;  // only offsets, which nobody asks for
    if (!frame.before.empty() || !frame.after.empty()) not_covered(step, "a second frame of special tokens");
    if (type == "TemplateProcessing") {
      frame = template_of(step);
    } else if (type == "RobertaProcessing" || type == "BertProcessing") {
      frame = {{pair_id(step.member("cls"))}, {pair_id(step.member("sep"))}};
    } else {
      not_covered(step, "a post-processor of type " + type);
    }
  }
  return frame;
}

/// Nothing where it is none.
std::optional<std::pair<std::string, std::string>> merge_of(const Json& json) {
  if (json.is_array() && json.size() == 2 && json[0].is_string() && json[1].is_string())
    return std::pair(json[0].get<std::string>(), json[1].get<std::string>());
  if (json.is_string()) {
    const auto& text = json.get_ref<const std::string&>();
    const size_t space = text.find(' ');
    if (space != std::string::npos && text.find(' ', space + 1) == std::string::npos)
      return std::pair(text.substr(0, space), text.substr(space + 1));
  }
  return std::nullopt;
}

void read_vocabulary(const Part& vocabulary, BpeParts& model) {
  model.vocabulary.reserve(vocabulary.object().size());
  for (const auto& [content, id] : vocabulary.object().get_ref<const Json::object_t&>()) {
    const bool fits = id.is_number_unsigned() && id.get<uint64_t>() < kMaxIds;  // the usual case, quickly
    model.vocabulary.emplace_back(content, fits ? id.get<int32_t>() : vocabulary.member(content).id());
  }
}

BpeParts bpe_of(const Part& part) {
  BpeParts model;
  read_vocabulary(part.member("vocab"), model);
  const Part merges = part.member("merges");
  const Json& list = merges.array();
  if (list.size() > static_cast<size_t>(kMaxIds)) merges.expected("at most 4194304 merges");
  model.merges.reserve(list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    auto merge = merge_of(list[i]);
    if (!merge) merges.element(i).expected("two tokens, as \"a b\" or [\"a\", \"b\"]");
    model.merges.push_back(*std::move(merge));
  }
  const Part unknown = part.member("unk_token");
  if (!unknown.absent()) model.unknown = unknown.text();
  model.continuing_prefix = part.member("continuing_subword_prefix").text_or("");
  model.word_suffix = part.member("end_of_word_suffix").text_or("");
  model.fuse_unknown = part.member("fuse_unk").flag(false);
  model.byte_fallback = part.member("byte_fallback").flag(false);
  model.ignore_merges = part.member("ignore_merges").flag(false);
  if (!part.member("dropout").absent()) not_covered(part.member("dropout"), "random dropping of merges");
  return model;
}

void read_word_piece(const Part& part, TokenizerFile& file) {
  file.kind = ModelKind::kWordPiece;
  read_vocabulary(part.member("vocab"), file.model);
  file.model.unknown = part.member("unk_token").text_or("[UNK]");
  file.model.continuing_prefix = part.member("continuing_subword_prefix").text_or("##");
  const Part limit = part.member("max_input_chars_per_word");
  if (!limit.absent()) file.max_word_characters = limit.number(1 << 16);
}

void read_unigram(const Part& part, TokenizerFile& file) {
  file.kind = ModelKind::kUnigram;
  for (const Part& entry : part.member("vocab").elements(kMaxIds)) {
    const Json& pair = entry.array();
    if (pair.size() != 2 || !pair[0].is_string() || !pair[1].is_number()) entry.expected("[content, score]");
    file.model.vocabulary.emplace_back(pair[0].get<std::string>(),
                                       static_cast<int32_t>(file.unigram.scores.size()));
    file.unigram.scores.push_back(pair[1].get<double>());
  }
  const Part unknown = part.member("unk_id");
  if (!unknown.absent()) file.unigram.unknown = unknown.id();
  file.model.byte_fallback = part.member("byte_fallback").flag(false);
}

void read_model(const Part& part, TokenizerFile& file) {
  if (part.absent()) part.expected("an object");
  const Part type = part.member("type");
  if (type.absent() && part.member("merges").absent()) type.expected("\"BPE\"");
  const std::string name = type.text_or("BPE");
  if (name == "WordPiece") return read_word_piece(part, file);
  if (name == "Unigram") return read_unigram(part, file);
  if (name != "BPE") not_covered(part, "a model of type " + name);
  file.model = bpe_of(part);
}

/// An added token that the vocabulary has too must be the same there; no two contents share an id.
void check_added(const TokenizerFile& file, const Part& part) {
  std::unordered_map<int32_t, std::string_view> content_of;
  std::unordered_map<std::string_view, int32_t> id_of;
  for (const auto& [content, id] : file.model.vocabulary) {
    content_of.emplace(id, content);
    id_of.emplace(content, id);
  }
  for (size_t i = 0; i < file.added.size(); ++i) {
    const AddedToken& token = file.added[i];
    const auto content = content_of.emplace(token.id, token.content).first->second;
    const auto id = id_of.emplace(token.content, token.id).first->second;
    if (content == token.content && id == token.id) continue;
    part.element(i).refuse(
        fmt::format("expected one id a content, got '{}' with id {} beside '{}' with id {}", token.content,
                    token.id, content, id));
  }
}

void check_frame(const TokenizerFile& file, const Part& part) {
  if (file.frame.before.empty() && file.frame.after.empty()) return;
  std::unordered_set<int32_t> known;
  for (const auto& token : file.model.vocabulary) known.insert(token.second);
  for (const AddedToken& token : file.added) known.insert(token.id);
  for (const auto* side : {&file.frame.before, &file.frame.after}) {
    for (const int32_t id : *side) {
      if (!known.contains(id)) part.refuse(fmt::format("expected ids of tokens, got {}", id));
    }
  }
}

}  // namespace

TokenizerFile parse_tokenizer_file(std::string_view json, const std::string& place) {
  const Json tree = parse_json(json, place);
  const Part root(&tree, place, "");
  TokenizerFile file;
  read_model(root.member("model"), file);
  file.added = added_of(root.member("added_tokens"));
  check_added(file, root.member("added_tokens"));
  for (const Part& step : steps_of(root.member("normalizer"), "normalizers"))
    file.normalizer.push_back(normalizer_of(step));
  for (const Part& step : steps_of(root.member("pre_tokenizer"), "pretokenizers")) {
    if (step.member("type").text() == "BertPreTokenizer") {
      for (auto& one : bert_pre_tokenizer(step)) file.pre_tokenizer.push_back(std::move(one));
    } else {
      file.pre_tokenizer.push_back(pre_tokenizer_of(step));
    }
  }
  const Part decoder = root.member("decoder");
  if (!decoder.absent()) file.decoder.emplace();
  for (const Part& step : steps_of(decoder, "decoders")) file.decoder->push_back(decoder_of(step));
  file.frame = frame_of(root.member("post_processor"));
  check_frame(file, root.member("post_processor"));
  return file;
}

}  // namespace chiliad::text::detail
