#include "chiliad/weights/key_tables/diffusion.h"

#include <fmt/core.h>

namespace chiliad::weights {
namespace {

using Kind = KeyRule::Kind;

constexpr std::string_view kSharedPrefix = "transformer_blocks.0.norm1.emb.";

std::vector<std::string> in_order(const std::string& before, const std::vector<std::string>& names) {
  std::vector<std::string> whole;
  for (const auto& name : names) whole.push_back(before + name + ".$2");
  return whole;
}

/// What the original files of DiT and PixArt have in common.
void add_original_blocks(std::vector<KeyRule>& rules) {
  const std::string block = "transformer_blocks.$1.";
  const std::string behind = R"(\.(weight|bias)$)";
  rules.push_back({R"(^pos_embed$)", "", Kind::kIgnore});
  rules.push_back({R"(^x_embedder\.proj\.)", "pos_embed.proj."});
  rules.push_back({R"(^blocks\.(\d+)\.attn\.qkv)" + behind, "", Kind::kSplit,
                   in_order(block, {"attn1.to_q", "attn1.to_k", "attn1.to_v"})});
  rules.push_back({R"(^blocks\.(\d+)\.attn\.proj\.)", block + "attn1.to_out.0."});
  rules.push_back({R"(^blocks\.(\d+)\.mlp\.fc1\.)", block + "ff.net.0.proj."});
  rules.push_back({R"(^blocks\.(\d+)\.mlp\.fc2\.)", block + "ff.net.2."});
}

void add_mlp(std::vector<KeyRule>& rules, const std::string& theirs, const std::string& ours) {
  rules.push_back({"^" + theirs + R"(\.mlp\.0\.)", ours + ".linear_1."});
  rules.push_back({"^" + theirs + R"(\.mlp\.2\.)", ours + ".linear_2."});
}

void add_original_dit(std::vector<KeyRule>& rules) {
  const std::string shared(kSharedPrefix);
  add_original_blocks(rules);
  add_mlp(rules, "t_embedder", shared + "timestep_embedder");
  rules.push_back({R"(^y_embedder\.embedding_table\.)", shared + "class_embedder.embedding_table."});
  rules.push_back({R"(^blocks\.(\d+)\.adaLN_modulation\.1\.)", "transformer_blocks.$1.norm1.linear."});
  rules.push_back({R"(^final_layer\.adaLN_modulation\.1\.)", "proj_out_1."});
  rules.push_back({R"(^final_layer\.linear\.)", "proj_out_2."});
}

void add_original_pixart(std::vector<KeyRule>& rules) {
  const std::string block = "transformer_blocks.$1.";
  add_original_blocks(rules);
  add_mlp(rules, "t_embedder", "adaln_single.emb.timestep_embedder");
  add_mlp(rules, "csize_embedder", "adaln_single.emb.resolution_embedder");
  add_mlp(rules, "ar_embedder", "adaln_single.emb.aspect_ratio_embedder");
  rules.push_back({R"(^t_block\.1\.)", "adaln_single.linear."});
  // The empty caption as the text encoder gives it: an input, not a parameter.
  rules.push_back({R"(^y_embedder\.y_embedding$)", "", Kind::kIgnore});
  rules.push_back({R"(^y_embedder\.y_proj\.fc(\d)\.)", "caption_projection.linear_$1."});
  rules.push_back({R"(^blocks\.(\d+)\.scale_shift_table$)", block + "scale_shift_table"});
  rules.push_back({R"(^blocks\.(\d+)\.cross_attn\.q_linear\.)", block + "attn2.to_q."});
  rules.push_back({R"(^blocks\.(\d+)\.cross_attn\.kv_linear\.(weight|bias)$)", "", Kind::kSplit,
                   in_order(block, {"attn2.to_k", "attn2.to_v"})});
  rules.push_back({R"(^blocks\.(\d+)\.cross_attn\.proj\.)", block + "attn2.to_out.0."});
  rules.push_back({R"(^final_layer\.scale_shift_table$)", "scale_shift_table"});
  rules.push_back({R"(^final_layer\.linear\.)", "proj_out."});
}

}  // namespace

KeyTable diffusion_keys(const spec::DiffusionOptions& options) {
  std::vector<KeyRule> rules;
  // Fixed positions are made anew; those of sd3 are part of the model.
  if (options.family != "sd3") rules.push_back({R"(^pos_embed\.pos_embed$)", "", Kind::kIgnore});
  if (options.family == "dit")
    rules.push_back(
        {R"(^transformer_blocks\.[1-9]\d*\.norm1\.emb\.)", std::string(kSharedPrefix), Kind::kAlias});
  if (options.family == "dit") add_original_dit(rules);
  if (options.family == "pixart") add_original_pixart(rules);
  return KeyTable(std::move(rules));
}

std::vector<std::string> diffusers_keys_of(const spec::DiffusionOptions& options,
                                           const std::string& parameter) {
  if (options.family != "dit" || !parameter.starts_with(kSharedPrefix)) return {parameter};
  std::vector<std::string> keys;
  for (int64_t i = 0; i < options.depth; ++i)
    keys.push_back(
        fmt::format("transformer_blocks.{}.norm1.emb.{}", i, parameter.substr(kSharedPrefix.size())));
  return keys;
}

}  // namespace chiliad::weights
