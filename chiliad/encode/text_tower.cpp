#include "chiliad/encode/text_tower.h"

#include <ATen/ATen.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "chiliad/base/error.h"
#include "chiliad/base/json_text.h"
#include "chiliad/io/file.h"

namespace chiliad::encode {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxSettings = 64 << 20;

/// The token that the tokenizer's settings name; the encoder's own where they name none.
int64_t pad_token_of(const fs::path& folder, const text::Tokenizer& tokenizer, int64_t fallback) {
  constexpr std::array<const char*, 2> kFiles{"tokenizer_config.json", "special_tokens_map.json"};
  for (const char* name : kFiles) {
    if (!fs::is_regular_file(folder / name)) continue;
    const auto json = try_parse_json<nlohmann::json>(io::read_text(folder / name, kMaxSettings));
    if (!json.is_object() || !json.contains("pad_token")) continue;
    const auto& token = json.at("pad_token");
    const auto content = token.is_object()   ? token.value("content", "")
                         : token.is_string() ? token.get<std::string>()
                                             : "";
    if (const auto id = tokenizer.id_of(content); id.has_value()) return *id;
  }
  return fallback;
}

}  // namespace

at::ScalarType text_precision(const spec::EncodersOptions& encoders) {
  return encoders.compute == "bf16" ? at::kBFloat16 : at::kFloat;
}

TextTower::TextTower(const TowerFiles& files, int64_t max_tokens)
    : tokenizer_(text::open_tokenizer(files.tokenizer)),
      encoder_(model::TextEncoder::open(files.encoder, files.type)),
      max_tokens_(max_tokens == 0 ? encoder_.options().positions : max_tokens),
      pad_token_(pad_token_of(files.tokenizer, *tokenizer_, encoder_.options().pad_token)) {
  const int64_t most = encoder_.options().positions;
  if (most == 0 || max_tokens_ <= most) return;
  throw InvalidInput("model.text_max_tokens",
                     fmt::format("expected at most the {} tokens of {}, got {}. Set it to {}", most,
                                 files.encoder.string(), max_tokens_, most));
}

TextTower::Rows TextTower::rows_of(const std::vector<std::string>& texts, int64_t length) const {
  std::vector<std::vector<int32_t>> rows;
  int64_t longest = std::max<int64_t>(1, length);
  for (const auto& text : texts) {
    rows.push_back(text::fit_tokens(*tokenizer_, text, max_tokens_));
    longest = std::max(longest, std::ssize(rows.back()));
  }
  Rows made{at::full({std::ssize(rows), longest}, pad_token_, at::kLong), {}};
  auto* out = made.tokens.mutable_data_ptr<int64_t>();
  for (const auto& row : rows) {
    std::copy(row.begin(), row.end(), out);
    out += longest;
    made.counts.push_back(std::ssize(row));
  }
  return made;
}

model::TextEncoding TextTower::encode(const Rows& rows, bool attend_padding, bool want_hidden) const {
  at::Tensor mask = at::ones_like(rows.tokens);
  for (size_t i = 0; i < rows.counts.size() && !attend_padding; ++i)
    mask[static_cast<int64_t>(i)].narrow(0, rows.counts[i], mask.size(1) - rows.counts[i]).zero_();
  return encoder_.encode(rows.tokens, mask, want_hidden);
}

int64_t TextTower::count(const std::string& text) const {
  return std::ssize(text::fit_tokens(*tokenizer_, text, max_tokens_));
}

}  // namespace chiliad::encode
