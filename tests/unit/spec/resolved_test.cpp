// What is made from a run file that was read: YAML, differences, the content digest.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "chiliad/spec/detail/sections.h"
#include "chiliad/spec/detail/value.h"
#include "chiliad/spec/run_file.h"

namespace chiliad::spec {
namespace {

RunFile with(const std::vector<std::string>& overrides) {
  std::vector<std::string> all = overrides;
  const bool has_index = std::any_of(all.begin(), all.end(), [](const auto& o) {
    return o.rfind("data.index=", 0) == 0 || o.rfind("data.sources=", 0) == 0;
  });
  if (!has_index) all.emplace_back("data.index=birds");
  return parse_run_file("version: 1\n", "run.yaml", "run", all);
}

RunFile read_back(const RunFile& file) {
  return parse_run_file(to_yaml(file), "resolved", "other", {});
}

// A value for each option that differs from its default and breaks no rule that joins options.
std::string other_value(const std::string& key, const detail::Option& option) {
  const std::vector<std::pair<std::string, std::string>> special{
      {"model.width", "264"},
      {"model.heads", "8"},
      {"model.patch", "4"},
      {"data.resolution", "40"},
      {"data.bucket_step", "16"},
      {"data.bucket_min", "24"},
      {"data.bucket_max", "72"},
      {"data.buckets", "pixart-512"},
      {"store.bytes", "123456789"},
      {"data.background", "#00ff00"},
      {"data.languages", "[no, \"pt-BR\"]"},
      {"data.index", "a b/\"c\\d\""},
      {"data.sources",
       "[{name: a, index: \"x y\", weight: [[0, 1], [9, 0.25]], ramp: true, epochs: 3, languages: [de], "
       "profile: work}, "
       "{name: g, weight: 2, sources: [{name: b, index: b.index, weight: 0.1}]}]"},
      {"data.stages",
       "[{from: 9, resolution: 40, bucket_step: 16, micro_batch_items: 3}, {from: 20, buckets: kohya}]"},
      {"run.name", "null"},
      {"run.dir", "../x y"},
      {"optimizer.frozen", "[head]"},
      {"parallel.dp_shard", "3"},
      {"parallel.tp", "2"},
      {"model.kv_heads", "2"},
      {"model.head_size", "10"},
      {"model.norm_eps", "1e-6"},
      {"model.rope_beta_fast", "16"},
      {"model.rope_high_frequency", "8"},
      {"model.latent_pixels", "4"},
      {"encoders.tile", "64"},
      {"encoders.tile_overlap", "16"},
      {"model.rope_axes", "[32, 8, 32]"},
      {"model.dual_attention_layers", "[1]"},
      {"model.stage_channels", "[32, 64]"},
      {"model.norm_groups", "16"},
      {"objective.beta_start", "0.001"},
      {"vision.side", "28"},
      {"evaluation.guidance_channels", "3"},
      {"evaluation.prompts", "[\"a b\", c]"}};
  for (const auto& [name, value] : special) {
    if (name == key) return value;
  }
  if (const auto* rule = std::get_if<detail::ChoiceRule>(&option.rule)) {
    const std::string usual = detail::format_value(option, RunFile{});
    return rule->choices.back() == usual ? rule->choices.front() : rule->choices.back();
  }
  if (std::holds_alternative<detail::BoolRule>(option.rule))
    return detail::format_value(option, RunFile{}) == "true" ? "false" : "true";
  if (const auto* rule = std::get_if<detail::NumberRule>(&option.rule))
    return rule->min < 0.37 ? "0.37" : rule->max < 123456.0 ? "4.5" : "123456";
  if (std::holds_alternative<detail::BytesRule>(option.rule)) return "1234567";
  return "9";
}

bool one_of(const std::string& key, const std::vector<std::string>& names) {
  return std::find(names.begin(), names.end(), key) != names.end();
}

/// What a file of a family on latents says.
std::vector<std::string> latent_ground(const std::string& family,
                                       const std::string& prediction = "velocity") {
  std::vector<std::string> ground{"model.family=" + family, "encoders.pictures=vae",
                                  "model.width=288",        "data.bucket_step=64",
                                  "data.bucket_min=64",     "data.bucket_max=128",
                                  "data.resolution=64",     "objective.prediction=" + prediction};
  if (family == "dit") {
    ground.emplace_back("model.classes=7");
  } else {
    ground.emplace_back("model.text_channels=8");
    ground.emplace_back("encoders.text=bert");
  }
  if (family == "sd3" || family == "flux") ground.emplace_back("model.pooled_channels=8");
  if (family == "flux") ground.emplace_back("model.rope_axes=[8, 32, 32]");
  return ground;
}

/// The same for options of pictures' families; nothing for other options.
std::vector<std::string> picture_ground(const std::string& key) {
  if (one_of(key, {"model.latent_channels", "model.latent_pixels", "model.sample_size", "model.classes"}))
    return latent_ground("dit");
  if (one_of(key, {"model.learned_variance", "objective.noise_schedule", "objective.beta_start",
                   "objective.beta_end", "objective.train_steps", "objective.zero_terminal_snr",
                   "objective.min_snr_gamma", "objective.prediction"})) {
    auto ground = latent_ground("dit", key == "model.learned_variance" ? "noise" : "velocity");
    ground.emplace_back("objective.kind=ddpm");
    return ground;
  }
  if (key == "objective.mode_scale") return {"objective.times=mode"};
  if (key == "optimizer.decay_fraction") return {"optimizer.decay=linear"};
  if (one_of(key, {"optimizer.ema_inv_gamma", "optimizer.ema_power"}))
    return {"optimizer.ema=0.9", "optimizer.ema_warmup=power"};
  if (key.starts_with("optimizer.ema_")) return {"optimizer.ema=0.9"};
  if (key.ends_with(".embedded_guidance")) {
    auto ground = latent_ground("flux");
    ground.emplace_back("model.guidance_input=true");
    return ground;
  }
  if (key == "evaluation.guidance_channels") return latent_ground("pixart");
  if (key == "evaluation.every") return {"data.held_out=3"};
  if (key == "evaluation.samples_every") return {"evaluation.prompts=[a]"};
  if (key.starts_with("encoders.") ||
      one_of(key, {"model.text_channels", "model.interpolation_scale", "model.size_conditions"})) {
    auto ground = latent_ground("pixart");
    if (key == "encoders.latent_shift") ground.emplace_back("encoders.latent_scale=2");
    if (key == "encoders.tile_overlap") ground.emplace_back("encoders.tile=512");
    return ground;
  }
  if (one_of(key, {"model.pooled_channels", "model.max_positions", "model.dual_attention_layers",
                   "model.qk_norm"}))
    return latent_ground("sd3");
  if (one_of(key, {"model.single_depth", "model.guidance_input", "model.rope_axes"}))
    return latent_ground("flux");
  if (one_of(key, {"model.stage_channels", "model.layers_per_stage", "model.norm_groups", "model.quant_convs",
                   "model.middle_attention", "objective.error", "objective.kl_weight", "objective.perceptual",
                   "objective.perceptual_weight", "objective.kind"})) {
    std::vector<std::string> ground{"model.family=autoencoder", "objective.kind=reconstruction",
                                    "data.languages=[]"};
    if (key == "objective.perceptual_weight") ground.emplace_back("objective.perceptual=net.pt");
    return ground;
  }
  return {};
}

// What else a file must say so that the option may be set: some belong to a family, a rope scaling or a mode.
std::vector<std::string> ground_of(const std::string& key) {
  if (key == "parallel.dp_shard" || key == "parallel.tp") return {"parallel.nproc=6"};
  if (key == "parallel.recompute") return {"parallel.memory_budget=1GiB"};  // auto needs it
  if (key == "data.mixing") return {"data.sources=[{name: a, index: b}]"};
  if (key == "parallel.memory_budget") return {"parallel.recompute=auto"};
  std::vector<std::string> pictures = picture_ground(key);
  if (!pictures.empty()) {
    std::erase_if(pictures, [&](const auto& change) { return change.starts_with(key + "="); });
    return pictures;
  }
  std::vector<std::string> ground{"model.mlp_width=64", "model.vocabulary=96", "model.family=llama",
                                  "data.mode=pack"};
  const auto with_rope = [&](const char* scaling) {
    ground.emplace_back("model.rope_original_context=16");
    ground.emplace_back(scaling);
  };
  if (one_of(key, {"model.rope_low_frequency", "model.rope_high_frequency"})) {
    with_rope("model.rope_scaling=llama3");
  } else if (one_of(key, {"model.rope_factor", "model.rope_original_context", "model.rope_beta_fast",
                          "model.rope_beta_slow", "model.rope_attention_factor", "model.rope_scaling"})) {
    with_rope("model.rope_scaling=yarn");
  } else if (key == "data.end_token") {
    ground.emplace_back("data.tokenizer=t.json");
  } else if (!one_of(key, {"model.family", "model.kv_heads", "model.head_size", "model.mlp_width",
                           "model.vocabulary", "model.rope_theta", "model.norm_eps", "model.tied",
                           "model.attention_bias", "model.mlp_bias", "data.mode", "data.tokenizer",
                           "data.packs", "vision.template"})) {
    return {};
  }
  std::erase_if(ground, [&](const auto& change) { return change.rfind(key + "=", 0) == 0; });
  return ground;
}

std::vector<std::string> with_other_value(const std::string& key, const detail::Option& option) {
  std::vector<std::string> overrides = ground_of(key);
  overrides.push_back(key + "=" + other_value(key, option));
  return overrides;
}

/// The same file but for one option; it need not be a valid one.
RunFile with_default(const detail::Option& option, RunFile file) {
  RunFile usual;
  const auto from = option.access.field(usual);
  std::visit([&](auto* to) { *to = *std::get<decltype(to)>(from); }, option.access.field(file));
  return file;
}

bool has_another_value(const detail::Option& option) {
  if (option.name == "cp" || option.name == "pp") return false;  // not built yet
  const auto* rule = std::get_if<detail::ChoiceRule>(&option.rule);
  return rule == nullptr || rule->choices.size() > 1;
}

TEST(ResolvedTest, EveryOptionSurvivesTheWayToYamlAndBack) {
  for (const auto& section : detail::sections()) {
    for (const auto& option : section.options) {
      if (!has_another_value(option)) continue;
      const std::string key = section.name + "." + option.name;
      std::vector<std::string> overrides = with_other_value(key, option);
      const bool has_sources = std::any_of(overrides.begin(), overrides.end(),
                                           [](const auto& o) { return o.starts_with("data.sources="); });
      if (key != "data.index" && !has_sources) overrides.emplace_back("data.index=birds");
      const RunFile file = parse_run_file("version: 1\n", "run.yaml", "run", overrides);
      EXPECT_TRUE(compare(file, read_back(file)).empty()) << key << "\n" << to_yaml(file);
      EXPECT_FALSE(option.access.value(file) == option.access.value(RunFile{})) << key << " kept its default";
    }
  }
}

TEST(ResolvedTest, UnevenNumbersKeepAllDigits) {
  const RunFile file = with({"optimizer.lr=0.00030000000000000003", "run.seed=9223372036854775807"});
  const RunFile again = read_back(file);
  EXPECT_EQ(again.optimizer.lr, file.optimizer.lr);
  EXPECT_EQ(again.run.seed, 9223372036854775807u);
}

TEST(ResolvedTest, CompareNamesKeyAndBothValues) {
  const auto differences = compare(with({"data.batch=8"}), with({"data.batch=16"}));
  ASSERT_EQ(differences.size(), 1u);
  EXPECT_EQ(differences[0].key, "data.batch");
  EXPECT_EQ(differences[0].old_value, "8");
  EXPECT_EQ(differences[0].new_value, "16");
  EXPECT_FALSE(differences[0].free_on_resume);
}

TEST(ResolvedTest, LayoutRatesAndIntervalsAreFreeOnResume) {
  const std::vector<std::string> free{"run.steps=7",
                                      "run.name=x",
                                      "optimizer.lr=0.5",
                                      "optimizer.warmup_steps=3",
                                      "optimizer.clip=0.5",
                                      "optimizer.decay=cosine",
                                      "parallel.nproc=2",
                                      "parallel.threads=3",
                                      "parallel.reshard_after_forward=false",
                                      "checkpoint.every=7",
                                      "checkpoint.keep=5",
                                      "observe.log_every=3",
                                      "observe.ledger=true",
                                      "supervise.exit_grace_s=3",
                                      "data.index=moved",
                                      "data.loader_threads=5",
                                      "data.prefetch_steps=9",
                                      "data.prefetch_bytes=2MiB",
                                      "data.cache_bytes=0",
                                      "data.micro_batch_items=3"};
  const RunFile usual = with({});
  for (const std::string& change : free) {
    const auto differences = compare(usual, with({change}));
    ASSERT_EQ(differences.size(), 1u) << change;
    EXPECT_TRUE(differences[0].free_on_resume) << change;
  }
}

TEST(ResolvedTest, ModelObjectiveAndContentAreFixed) {
  for (const std::string& change :
       std::vector<std::string>{"model.depth=5", "objective.shift=2", "optimizer.beta1=0.8", "run.seed=2",
                                "data.flip=true", "optimizer.ema=0.9"}) {
    const auto differences = compare(with({}), with({change}));
    ASSERT_EQ(differences.size(), 1u) << change;
    EXPECT_FALSE(differences[0].free_on_resume) << change;
  }
}

TEST(ContentDigestTest, ChangesWithContentOnly) {
  for (const auto& section : detail::sections()) {
    for (const auto& option : section.options) {
      const std::string key = section.name + "." + option.name;
      if (!has_another_value(option) || key == "data.index") continue;
      const RunFile file = with(with_other_value(key, option));
      const bool changed = content_digest(file) != content_digest(with_default(option, file));
      const bool is_content = (section.name == "data" && option.on_resume != detail::OnResume::kFree) ||
                              (section.name == "vision" && option.on_resume == detail::OnResume::kContent) ||
                              key == "run.seed";
      EXPECT_EQ(changed, is_content) << key;
    }
  }
}

TEST(ContentDigestTest, DoesNotKnowWhereTheIndexLies) {
  const auto digest = [](const std::string& index) {
    return content_digest(parse_run_file("version: 1\n", "run.yaml", "run", {"data.index=" + index}));
  };
  EXPECT_EQ(digest("a"), digest("b"));
}

}  // namespace
}  // namespace chiliad::spec
