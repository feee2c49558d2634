#include <algorithm>
#include <optional>
#include <utility>

#include "chiliad/text/detail/byte_level.h"
#include "chiliad/text/detail/steps.h"
#include "chiliad/text/detail/utf8.h"

namespace chiliad::text::detail {
namespace {

std::vector<std::string> from_byte_level(const std::vector<std::string>& tokens) {
  std::string bytes;
  for (const std::string& token : tokens) bytes += characters_to_bytes(token).value_or(token);
  std::string text;
  (void)replace_broken(bytes, text);
  return {std::move(text)};
}

std::optional<char> byte_of(const std::string& token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
  int value = 0;
  for (const char c : token.substr(3, 2)) {
    const auto digit =
        std::string_view("0123456789abcdef").find(c >= 'A' && c <= 'F' ? static_cast<char>(c + 32) : c);
    if (digit == std::string_view::npos) return std::nullopt;
    value = value * 16 + static_cast<int>(digit);
  }
  return static_cast<char>(value);
}

// A run of byte tokens that is not UTF-8 becomes U+FFFD a byte, not a maximal subpart.
std::vector<std::string> from_bytes(std::vector<std::string> tokens) {
  std::vector<std::string> out;
  std::string run;
  const auto end_run = [&] {
    if (run.empty()) return;
    std::string text;
    if (replace_broken(run, text)) {
      for (size_t i = 0; i < run.size(); ++i) out.emplace_back(kReplacement);
    } else {
      out.push_back(std::move(text));
    }
    run.clear();
  };
  for (std::string& token : tokens) {
    if (const auto byte = byte_of(token)) {
      run += *byte;
      continue;
    }
    end_run();
    out.push_back(std::move(token));
  }
  end_run();
  return out;
}

void strip(const DecoderStep& step, std::string& token) {
  for (int64_t i = 0; i < step.start && token.starts_with(step.content); ++i)
    token.erase(0, step.content.size());
  for (int64_t i = 0; i < step.stop && token.ends_with(step.content); ++i)
    token.resize(token.size() - step.content.size());
}

std::vector<std::string> from_spaces(const DecoderStep& step, std::vector<std::string> tokens) {
  const Pattern stand_in = Pattern::literal(step.content);
  for (size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = stand_in.replace_all(tokens[i], i == 0 && step.drop_first ? "" : " ");
  return tokens;
}

std::string cleaned_up(std::string token) {
  static const std::pair<const char*, const char*> kPairs[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : kPairs) token = Pattern::literal(from).replace_all(token, to);
  return token;
}

std::vector<std::string> from_word_pieces(const DecoderStep& step, std::vector<std::string> tokens) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0 && tokens[i].starts_with(step.content)) {
      tokens[i].erase(0, step.content.size());
    } else if (i > 0) {
      tokens[i].insert(0, 1, ' ');
    }
    if (step.clean_up) tokens[i] = cleaned_up(std::move(tokens[i]));
  }
  return tokens;
}

std::string join(const std::vector<std::string>& tokens) {
  std::string text;
  for (const std::string& token : tokens) text += token;
  return text;
}

std::vector<std::string> apply(const DecoderStep& step, std::vector<std::string> tokens) {
  using Kind = DecoderStep::Kind;
  switch (step.kind) {
    case Kind::kByteLevel:
      return from_byte_level(tokens);
    case Kind::kByteFallback:
      return from_bytes(std::move(tokens));
    case Kind::kFuse:
      return {join(tokens)};
    case Kind::kMetaspace:
      return from_spaces(step, std::move(tokens));
    case Kind::kWordPiece:
      return from_word_pieces(step, std::move(tokens));
    case Kind::kReplace:
      for (std::string& token : tokens) token = step.pattern.replace_all(token, step.content);
      break;
    case Kind::kStrip:
      for (std::string& token : tokens) strip(step, token);
      break;
  }
  return tokens;
}

}  // namespace

std::string decode_tokens(const std::vector<DecoderStep>& steps, std::vector<std::string> tokens) {
  for (const DecoderStep& step : steps) tokens = apply(step, std::move(tokens));
  return join(tokens);
}

}  // namespace chiliad::text::detail
