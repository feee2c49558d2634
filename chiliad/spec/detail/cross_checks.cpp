#include "chiliad/spec/detail/cross_checks.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "chiliad/base/error.h"
#include "chiliad/spec/bucket_tables.h"
#include "chiliad/spec/detail/family_sets.h"
#include "chiliad/spec/detail/owned_options.h"
#include "chiliad/spec/detail/sections.h"
#include "chiliad/spec/detail/sources_rule.h"
#include "chiliad/spec/layer_table.h"
#include "chiliad/spec/shape_stages.h"
#include "chiliad/spec/tensor_shard.h"

namespace chiliad::spec::detail {
namespace {

using Found = std::optional<Conflict>;

Found check_heads(const ModelOptions& model) {
  if (model.head_size == 0 && model.width % model.heads != 0) {
    return Conflict{"model.width",
                    fmt::format("expected a multiple of model.heads ({}), got {}. Did you mean {}?",
                                model.heads, model.width, (model.width / model.heads + 1) * model.heads)};
  }
  if (model.head_size % 2 != 0) {
    return Conflict{"model.head_size", fmt::format("expected an even number, got {}. Did you mean {}?",
                                                   model.head_size, model.head_size + 1)};
  }
  const int64_t head_size = model.width / model.heads;
  if (model.head_size == 0 && head_size % 2 != 0) {
    return Conflict{"model.heads",
                    fmt::format("expected an even head size (model.width / model.heads), got {} / {} = "
                                "{}. Change one of them",
                                model.width, model.heads, head_size)};
  }
  return std::nullopt;
}

Found check_rope(const ModelOptions& model) {
  if (has_original_context(model) && model.rope_original_context == 0) {
    return Conflict{"model.rope_original_context",
                    fmt::format("expected a positive number for rope_scaling {}, got 0. Take "
                                "original_max_position_embeddings of the model's config.json",
                                model.rope_scaling)};
  }
  if (is_llama3(model) && model.rope_low_frequency >= model.rope_high_frequency) {
    return Conflict{
        "model.rope_low_frequency",
        fmt::format("expected less than model.rope_high_frequency ({}), got {}. Change one of them",
                    model.rope_high_frequency, model.rope_low_frequency)};
  }
  if (is_yarn(model) && model.rope_beta_slow >= model.rope_beta_fast) {
    return Conflict{"model.rope_beta_slow",
                    fmt::format("expected less than model.rope_beta_fast ({}), got {}. Change one of them",
                                model.rope_beta_fast, model.rope_beta_slow)};
  }
  return std::nullopt;
}

Found check_language(const ModelOptions& model) {
  if (model.kv_heads != 0 && model.heads % model.kv_heads != 0) {
    return Conflict{"model.kv_heads",
                    fmt::format("expected a divisor of model.heads ({}), got {}. Change one "
                                "of them",
                                model.heads, model.kv_heads)};
  }
  for (const auto& [key, value] :
       {std::pair{"model.mlp_width", model.mlp_width}, std::pair{"model.vocabulary", model.vocabulary}}) {
    if (value == 0) {
      return Conflict{key,
                      fmt::format("expected a positive number for family {}, got 0. Set it", model.family)};
    }
  }
  return check_rope(model);
}

/// A quarter of the width each for sine and cosine of a patch's row and column.
Found check_picture_width(const ModelOptions& model) {
  if (model.width % 4 == 0) return std::nullopt;
  const int64_t step = std::lcm(int64_t{4}, model.heads);
  return Conflict{"model.width",
                  fmt::format("expected a multiple of 4 for family {}, got {}. Did you mean {}?",
                              model.family, model.width, (model.width / step + 1) * step)};
}

Found check_multiple(const char* key, int64_t value, int64_t step) {
  if (value % step == 0) return std::nullopt;
  return Conflict{key, fmt::format("expected a multiple of data.bucket_step ({}), got {}. Did you mean {}?",
                                   step, value, (value / step + 1) * step)};
}

/// What an image token's side is made of.
std::string token_words(const ModelOptions& model) {
  if (is_autoencoder(model)) return "the autoencoder's factor";
  return is_latent_diffusion(model) ? "model.patch * model.latent_pixels" : "model.patch";
}

/// A published table has its own sizes; what is generated needs them.
Found check_table(const DataOptions& data, int64_t side, const ModelOptions& model) {
  if (data.bucket_no_upscale)
    return Conflict{
        "data.bucket_no_upscale",
        fmt::format("belongs to buckets auto and kohya: expected false for {}, got true. Change one "
                    "of them",
                    data.buckets)};
  for (const TableShape& shape : table_shapes(data.buckets)) {
    if (shape.width % side == 0 && shape.height % side == 0) continue;
    return Conflict{"data.buckets",
                    fmt::format("expected sides that are multiples of {} ({}), got {} with {} x {}. Choose "
                                "another table",
                                token_words(model), side, data.buckets, shape.width, shape.height)};
  }
  return std::nullopt;
}

Found check_buckets(const DataOptions& data, const ModelOptions& model) {
  const int64_t side = token_pixels(model);
  if (!is_generated(data.buckets)) return check_table(data, side, model);
  if (data.bucket_step % side != 0) {
    return Conflict{
        "data.bucket_step",
        fmt::format("expected a multiple of {} ({}), got {}. Did you mean {}?", token_words(model), side,
                    data.bucket_step, (data.bucket_step / side + 1) * side)};
  }
  if (auto conflict = check_multiple("data.bucket_min", data.bucket_min, data.bucket_step)) return conflict;
  if (auto conflict = check_multiple("data.bucket_max", data.bucket_max, data.bucket_step)) return conflict;
  if (data.bucket_min > data.resolution) {
    return Conflict{"data.bucket_min",
                    fmt::format("expected at most data.resolution ({}), got {}. Change one of them",
                                data.resolution, data.bucket_min)};
  }
  if (data.bucket_max < data.resolution) {
    return Conflict{"data.bucket_max",
                    fmt::format("expected at least data.resolution ({}), got {}. Change one of them",
                                data.resolution, data.bucket_max)};
  }
  return std::nullopt;
}

/// Later shapes are for models that see pixels of any size, item by item.
Found check_stages(const RunFile& file) {
  if (file.data.stages.empty()) return std::nullopt;
  const auto refused = [](const std::string& why) { return Conflict{"data.stages", why}; };
  if (is_language_model(file.model))
    return refused(fmt::format("expected none for family {}, which reads no pictures, got some. Remove them",
                               file.model.family));
  if (is_latent_diffusion(file.model))
    return refused(
        fmt::format("expected none for family {}: latents are made once for a picture, in one "
                    "shape; got some. Train a run for each resolution, each from the weights of "
                    "the one before (model.weights)",
                    file.model.family));
  const auto stages = stage_options(file.data);
  for (size_t s = 1; s < stages.size(); ++s) {
    if (const auto conflict = check_buckets(stages[s], file.model))
      return refused(fmt::format("from step {}: {}: {}", file.data.stages[s - 1].from, conflict->key,
                                 conflict->message));
  }
  return std::nullopt;
}

/// Autoencoders know no captions; the other families on pictures do.
Found check_languages(const RunFile& file) {
  if (is_language_model(file.model)) return std::nullopt;
  const bool none = file.data.languages.empty();
  if (none == is_autoencoder(file.model)) return std::nullopt;
  return Conflict{
      "data.languages",
      none ? fmt::format("expected at least one language for family {}, got an empty list", file.model.family)
           : fmt::format("expected [] for family autoencoder, which takes pictures with and without "
                         "captions, got [{}]. Set it to []",
                         fmt::join(file.data.languages, ", "))};
}

/// What the table of a latent family says about its options, by their names here.
Found check_latents(const RunFile& file) {
  const ModelOptions& model = file.model;
  const bool latents = is_latent_diffusion(model);
  if (!latents && !is_autoencoder(model)) return std::nullopt;
  if (latents && model.width % model.heads != 0) return check_heads(model);
  const auto needed = [&](const char* key, int64_t value, std::initializer_list<std::string_view> families) {
    return value == 0 && is_any(model, families)
               ? Found(Conflict{key, fmt::format("expected a positive number for family {}, got 0. Set it",
                                                 model.family)})
               : std::nullopt;
  };
  if (auto conflict = needed("model.classes", model.classes, {"dit"})) return conflict;
  if (auto conflict = needed("model.text_channels", model.text_channels, {"pixart", "sd3", "flux"}))
    return conflict;
  if (auto conflict = needed("model.pooled_channels", model.pooled_channels, {"sd3", "flux"}))
    return conflict;
  try {
    static_cast<void>(make_layer_table(model));
  } catch (const InvalidInput& error) {
    const std::string place = error.place();
    const size_t dot = place.find('.');
    const std::string option = dot == std::string::npos ? place : place.substr(dot + 1);
    const bool known = find_option(*find_section("model"), option) != nullptr;
    const std::string text = std::string(error.what()).substr(place.empty() ? 0 : place.size() + 2);
    return Conflict{known ? "model." + option : "model.width", known ? text : option + ": " + text};
  }
  return std::nullopt;
}

/// What an extension says about its options.
Found check_extension(const RunFile& file) {
  if (file.model.extension == nullptr) return std::nullopt;
  try {
    static_cast<void>(make_layer_table(file.model));
  } catch (const InvalidInput& error) {
    return Conflict{"model.family", error.what()};
  }
  return std::nullopt;
}

/// Convolutions are trained in fp32 alone.
Found check_precision(const RunFile& file) {
  if (!is_autoencoder(file.model) || file.parallel.compute == "fp32") return std::nullopt;
  return Conflict{"precision.compute", fmt::format("expected fp32 for family autoencoder, got {}. Change it",
                                                   file.parallel.compute)};
}

/// Prompts of class-conditional models are numbers of classes.
Found check_classes(const RunFile& file) {
  if (file.model.family != "dit") return std::nullopt;
  for (const std::string& prompt : file.evaluation.prompts) {
    const bool digits =
        !prompt.empty() && prompt.size() < 10 && prompt.find_first_not_of("0123456789") == std::string::npos;
    if (digits && std::stoll(prompt) < file.model.classes) continue;
    return Conflict{
        "evaluation.prompts",
        fmt::format("expected numbers of classes below {} for family dit, got '{}'. The model knows "
                    "classes, no text",
                    file.model.classes, prompt)};
  }
  return std::nullopt;
}

/// Evaluations have items, and pictures have prompts and a family that makes them.
Found check_evaluation(const RunFile& file) {
  const EvaluationOptions& evaluation = file.evaluation;
  if (evaluation.every > 0 && file.data.held_out == 0)
    return Conflict{"data.held_out",
                    "expected a positive number where evaluation.every is set, got 0. Set it to "
                    "the number of items to keep for evaluation"};
  if (evaluation.draws > 1 && !draws_times(file.model))
    return Conflict{"evaluation.draws",
                    fmt::format("expected 1 for family '{}', whose items have no times, got {}. "
                                "Remove the key",
                                file.model.family, evaluation.draws)};
  if (evaluation.guidance_channels > file.model.latent_channels)
    return Conflict{"evaluation.guidance_channels",
                    fmt::format("expected at most model.latent_channels ({}), got {}",
                                file.model.latent_channels, evaluation.guidance_channels)};
  if (evaluation.samples_every == 0) return std::nullopt;
  if (evaluation.prompts.empty())
    return Conflict{"evaluation.prompts",
                    "expected at least one prompt where evaluation.samples_every is set, got "
                    "an empty list"};
  if (auto conflict = check_classes(file)) return conflict;
  if (is_language_model(file.model) || is_autoencoder(file.model))
    return Conflict{"evaluation.samples_every",
                    fmt::format("expected 0 for family {}, which makes no pictures from prompts, got {}",
                                file.model.family, evaluation.samples_every)};
  if (file.parallel.tp > 1)
    return Conflict{
        "evaluation.samples_every",
        fmt::format("expected 0 where parallel.tp is {}: pictures are not made by ranks that share "
                    "layers yet, got {}",
                    file.parallel.tp, evaluation.samples_every)};
  return std::nullopt;
}

/// Kinds of loss have families, and predictions that they know.
Found check_objective(const RunFile& file) {
  const ObjectiveOptions& objective = file.objective;
  const std::string wanted = is_autoencoder(file.model) ? "reconstruction" : "";
  const bool reconstructs = objective.kind == "reconstruction";
  if (reconstructs != !wanted.empty()) {
    return Conflict{"objective.kind",
                    fmt::format("expected {} for family {}, got {}. Change one of them",
                                wanted.empty() ? "flow or ddpm" : wanted, file.model.family, objective.kind)};
  }
  if (objective.kind == "ddpm" && file.model.family == "pixel_dit")
    return Conflict{"objective.kind", "expected flow for family pixel_dit, got ddpm. Change one of them"};
  if (objective.prediction == "noise" && objective.kind != "ddpm")
    return Conflict{
        "objective.prediction",
        fmt::format("expected sample or velocity for objective.kind {}, got noise. Change one of them",
                    objective.kind)};
  if (objective.prediction == "noise" && objective.zero_terminal_snr)
    return Conflict{"objective.zero_terminal_snr",
                    "expected false for prediction noise, which says nothing about the sample where there is "
                    "noise alone, got true. Did you mean prediction velocity?"};
  if (objective.kind == "ddpm" && objective.beta_start > objective.beta_end)
    return Conflict{"objective.beta_start", fmt::format("expected at most objective.beta_end ({}), got {}",
                                                        objective.beta_end, objective.beta_start)};
  if (file.model.learned_variance && (objective.kind != "ddpm" || objective.prediction != "noise"))
    return Conflict{
        "model.learned_variance",
        fmt::format("expected false for objective.kind {} with prediction {}, got true. The variance "
                    "is learned with kind ddpm and prediction noise",
                    objective.kind, objective.prediction)};
  return std::nullopt;
}

/// Tiles are whole latents, and overlap by less than themselves.
Found check_tile(const RunFile& file) {
  const auto tile = file.encoders.tile;
  const auto overlap = file.encoders.tile_overlap;
  const auto factor = file.model.latent_pixels;
  if (tile == 0 || (overlap < tile && tile % factor == 0 && overlap % factor == 0)) return std::nullopt;
  return Conflict{
      "encoders.tile",
      fmt::format(
          "tile and tile_overlap: expected multiples of {}, the autoencoder's factor "
          "(model.latent_pixels), and an overlap below the tile, got {} and {}. Usual are 512 and 128",
          factor, tile, overlap)};
}

/// Families on latents have what makes their inputs; the others have none.
Found check_encoders(const RunFile& file) {
  const EncodersOptions& encoders = file.encoders;
  const bool latents = is_latent_diffusion(file.model);
  const bool text = latents && reads_captions(file.model);
  struct Needed {
    const char* key;
    const std::string& value;
    bool needed;
    const char* what;
  };
  for (const auto& [key, value, needed, what] :
       {Needed{"encoders.pictures", encoders.pictures, latents, "an AutoencoderKL"},
        Needed{"encoders.text", encoders.text, text, "a text encoder"}}) {
    if (needed && value.empty())
      return Conflict{key, fmt::format("expected the folder of {} for family {}, got nothing. Set it", what,
                                       file.model.family)};
    if (!needed && !value.empty())
      return Conflict{
          key, fmt::format("expected nothing for family {}, got '{}'. Remove it", file.model.family, value)};
  }
  if (latents) {
    if (auto conflict = check_tile(file)) return conflict;
  }
  if (latents && file.data.crop != "center")
    return Conflict{"data.crop",
                    "expected center for latents, which are made once for a picture, got random. "
                    "Change it"};
  for (const auto& [key, value] : {std::pair{"data.jitter_brightness", file.data.jitter_brightness},
                                   std::pair{"data.jitter_contrast", file.data.jitter_contrast},
                                   std::pair{"data.jitter_saturation", file.data.jitter_saturation}}) {
    if (latents && value != 0.0)
      return Conflict{key, fmt::format("expected 0 for latents, which are made once for a picture, got {}. "
                                       "Change it",
                                       value)};
  }
  if ((latents || is_autoencoder(file.model)) && file.parallel.tp != 1)
    return Conflict{
        "parallel.tp",
        fmt::format("expected 1, for family {} is not cut over tensor-parallel ranks yet, got {}. "
                    "Give these ranks to parallel.dp_shard",
                    file.model.family, file.parallel.tp)};
  return std::nullopt;
}

/// Language models train on packs of documents, the others on pictures; those on latents on packs of them,
/// too.
Found check_mode(const RunFile& file) {
  if (is_latent_diffusion(file.model)) return std::nullopt;
  const std::string wanted = is_language_model(file.model) ? "pack" : "bucket";
  if (file.data.mode == wanted || file.data.mode == "pad") return std::nullopt;
  return Conflict{"data.mode", fmt::format("expected {} for family {}, got {}. Change one of them", wanted,
                                           file.model.family, file.data.mode)};
}

/// Frozen components must be there, and leave something to train.
Found check_frozen(const RunFile& file) {
  std::set<std::string> components;
  for (const auto& layer : make_layer_table(file.model).layers) components.insert(layer.component);
  const std::string list = fmt::format("{}", fmt::join(components, ", "));
  for (const auto& name : file.optimizer.frozen) {
    if (components.contains(name)) continue;
    return Conflict{"optimizer.frozen", fmt::format("expected components of family {} ({}), got {}",
                                                    file.model.family, list, name)};
  }
  if (file.optimizer.frozen.size() < components.size()) return std::nullopt;
  return Conflict{"optimizer.frozen", fmt::format("expected at least one component to train of {}", list)};
}

/// What the mesh has groups for and nothing runs on yet.
Found check_built(const ParallelOptions& parallel) {
  for (const auto& [key, size, what] : {std::tuple{"parallel.pp", parallel.pp, "pipeline"},
                                        std::tuple{"parallel.cp", parallel.cp, "context"}}) {
    if (size == 1) continue;
    return Conflict{
        key, fmt::format("expected 1, for {} parallelism is not built yet, got {}. Give these ranks to "
                         "parallel.dp_shard: did you mean dp_shard {}?",
                         what, size, size * parallel.dp_shard)};
  }
  return std::nullopt;
}

/// Ranks must fill the dimensions.
Found check_layout(const ParallelOptions& parallel) {
  const int64_t share = parallel.dp_shard * parallel.tp;
  if (parallel.nproc % share == 0) return std::nullopt;
  return Conflict{"parallel.nproc",
                  fmt::format("expected a multiple of dp_shard x tp ({} x {} = {}), got {}. Did you mean {}?",
                              parallel.dp_shard, parallel.tp, share, parallel.nproc,
                              (parallel.nproc / share + 1) * share)};
}

/// A budget and the choice that it is for come together.
Found check_budget(const ParallelOptions& parallel) {
  const bool automatic = parallel.recompute == "auto";
  if (automatic == (parallel.memory_budget > 0)) return std::nullopt;
  if (automatic) {
    return Conflict{"parallel.memory_budget",
                    "expected the bytes of a rank for recompute auto, got 0. Set it, as in 12GiB"};
  }
  return Conflict{
      "parallel.memory_budget",
      fmt::format("belongs to recompute auto: expected 0 for recompute {}, got {}. Change one of them",
                  parallel.recompute, parallel.memory_budget)};
}

/// What keeps `tp` ranks from sharing every layer; empty: nothing.
std::string sharing_obstacle(const LayerTable& table, int64_t heads, int64_t tp) {
  if (heads % tp != 0) return fmt::format("{} (key) heads are not a multiple of it", heads);
  try {
    for (const auto& layer : table.layers) static_cast<void>(tensor_shard(layer, static_cast<int>(tp)));
  } catch (const InvalidInput& error) {
    const std::string text = error.what();
    const size_t begin = error.place().empty() ? 0 : error.place().size() + 2;
    return text.substr(begin, text.find(". Choose") - begin);
  }
  return {};
}

/// The nearest number of tensor-parallel ranks that works is named.
Found check_tensor_parallel(const RunFile& file) {
  const int64_t tp = file.parallel.tp;
  if (tp == 1) return std::nullopt;
  const auto table = make_layer_table(file.model);
  const int64_t heads = file.model.kv_heads == 0 ? file.model.heads : file.model.kv_heads;
  const std::string obstacle = sharing_obstacle(table, heads, tp);
  if (obstacle.empty()) return std::nullopt;
  int64_t smaller = tp - 1;
  while (!sharing_obstacle(table, heads, smaller).empty()) --smaller;
  return Conflict{"parallel.tp",
                  fmt::format("expected a number that divides the (key) heads and the cut sizes of every "
                              "layer, got {}: {}. Did you mean {}?",
                              tp, obstacle, smaller)};
}

Found check_packs(const DataOptions& data) {
  if (data.packs.empty() || data.mode == "pack") return std::nullopt;
  return Conflict{"data.packs",
                  fmt::format("belongs to mode pack: expected nothing for mode {}, got '{}'. Leave "
                              "it out",
                              data.mode, data.packs)};
}

Found check_documents(const RunFile& file) {
  const DataOptions& data = file.data;
  const bool pack = is_language_model(file.model);
  if (pack && data.micro_batch_tokens < data.sequence_length) {
    return Conflict{"data.micro_batch_tokens",
                    fmt::format("expected at least data.sequence_length ({}), got {}. Did you mean {}?",
                                data.sequence_length, data.micro_batch_tokens, data.sequence_length)};
  }
  for (const auto& [key, value] :
       {std::pair("data.tokenizer", data.tokenizer), {"data.end_token", data.end_token}}) {
    if (pack || value.empty()) continue;
    return Conflict{
        key, fmt::format("expected nothing for family {}, which reads no documents, got '{}'. Leave it out",
                         file.model.family, value)};
  }
  if (pack && data.tokenizer.empty() && !data.end_token.empty()) {
    return Conflict{"data.end_token",
                    fmt::format("expected nothing for bytes, which have their own, got '{}'. Set "
                                "data.tokenizer, or leave it out",
                                data.end_token)};
  }
  return std::nullopt;
}

/// Conversations are items of language models, in whole squares of patches.
Found check_vision(const RunFile& file) {
  const VisionOptions& vision = file.vision;
  if (!reads_conversations(vision)) return std::nullopt;
  if (!is_language_model(file.model))
    return Conflict{"vision.template",
                    fmt::format("expected none for family {}, which reads no conversations, got {}. Leave it "
                                "out, or choose a language model",
                                file.model.family, vision.chat_template)};
  if (vision.side % vision.patch != 0)
    return Conflict{"vision.side", fmt::format("expected a multiple of vision.patch ({}), got {}",
                                               vision.patch, vision.side)};
  for (const auto& [key, value] :
       {std::pair("data.packs", file.data.packs), {"data.end_token", file.data.end_token}}) {
    if (!value.empty())
      return Conflict{key, fmt::format("expected nothing for conversations, got '{}'. Leave it out", value)};
  }
  return std::nullopt;
}

/// Storage fails for one rank and not for another; peers that share layers must leave out the same items.
Found check_unavailable(const RunFile& file) {
  if (file.data.on_unavailable == "stop" || file.parallel.tp == 1) return std::nullopt;
  return Conflict{
      "data.on_unavailable",
      fmt::format("expected stop where parallel.tp is {}: its ranks read the same items, and storage "
                  "may fail for one of them alone; got {}",
                  file.parallel.tp, file.data.on_unavailable)};
}

}  // namespace

Found find_conflict(const RunFile& file) {
  if (auto conflict = check_extension(file)) return conflict;
  if (auto conflict = find_foreign_option(file)) return conflict;
  if (auto conflict = check_latents(file)) return conflict;
  if (!is_autoencoder(file.model)) {
    if (auto conflict = check_heads(file.model)) return conflict;
  }
  if (is_language_model(file.model)) {
    if (auto conflict = check_language(file.model)) return conflict;
  }
  if (auto conflict = check_sources(file.data)) return conflict;
  if (auto conflict = check_stages(file)) return conflict;
  if (auto conflict = check_mode(file)) return conflict;
  if (auto conflict = check_languages(file)) return conflict;
  if (auto conflict = check_documents(file)) return conflict;
  if (auto conflict = check_packs(file.data)) return conflict;
  if (auto conflict = check_vision(file)) return conflict;
  if (auto conflict = check_built(file.parallel)) return conflict;
  if (auto conflict = check_layout(file.parallel)) return conflict;
  if (auto conflict = check_budget(file.parallel)) return conflict;
  if (auto conflict = check_tensor_parallel(file)) return conflict;
  if (auto conflict = check_unavailable(file)) return conflict;
  if (auto conflict = check_frozen(file)) return conflict;
  if (auto conflict = check_evaluation(file)) return conflict;
  if (is_language_model(file.model)) return std::nullopt;
  if (auto conflict = check_objective(file)) return conflict;
  if (auto conflict = check_encoders(file)) return conflict;
  if (auto conflict = check_precision(file)) return conflict;
  if (!is_autoencoder(file.model)) {
    if (auto conflict = check_picture_width(file.model)) return conflict;
  }
  return check_buckets(file.data, file.model);
}

}  // namespace chiliad::spec::detail
