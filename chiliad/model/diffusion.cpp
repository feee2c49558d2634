#include "chiliad/model/diffusion.h"

#include <ATen/ATen.h>

#include "chiliad/base/error.h"
#include "chiliad/model/diffusion/dit.h"
#include "chiliad/model/diffusion/flux.h"
#include "chiliad/model/diffusion/pixart.h"
#include "chiliad/model/diffusion/sd3.h"
#include "chiliad/model/diffusion/transformer_layer.h"
#include "chiliad/model/load_weights.h"
#include "chiliad/ops/axis_rotary.h"
#include "chiliad/ops/embedding.h"
#include "chiliad/spec/families/families.h"
#include "chiliad/weights/key_tables/diffusion.h"

namespace chiliad::model {
namespace {

/// One entry of a batch.
struct Entry {
  const char* name;
  const at::Tensor* value;
  bool used;
  bool optional = false;
};

std::vector<Entry> entries_of(const spec::DiffusionOptions& options, const LatentBatch& batch) {
  const bool dit = options.family == "dit";
  const bool pixart = options.family == "pixart";
  const bool pooled = options.family == "sd3" || options.family == "flux";
  return {{"latents", &batch.latents, true},
          {"time", &batch.time, true},
          {"labels", &batch.labels, dit},
          {"image_grids", &batch.grids, true, true},
          {"text_states", &batch.text, !dit},
          {"text_lengths", &batch.text_lengths, !dit && batch.grids.defined()},
          {"text_mask", &batch.text_mask, pixart, true},
          {"pooled", &batch.pooled, pooled},
          {"guidance", &batch.guidance, options.guidance},
          {"resolution", &batch.resolution, options.size_conditions},
          {"aspect_ratio", &batch.aspect_ratio, options.size_conditions}};
}

/// Of each item of a pack; else the one of all.
std::vector<Grid> grids_of(const spec::DiffusionOptions& options, const LatentBatch& batch) {
  const at::Tensor& latents = batch.latents;
  if (batch.grids.defined()) {
    const auto grids = grids_in(batch.grids);
    int64_t patches = 0;
    for (const Grid& grid : grids) patches += grid.rows * grid.columns;
    CHILIAD_CHECK_EQ(latents.size(1), patches);
    CHILIAD_CHECK_EQ(latents.size(2), options.in_channels * options.patch * options.patch);
    return grids;
  }
  const Grid grid{latents.size(2) / options.patch, latents.size(3) / options.patch};
  CHILIAD_CHECK_EQ(latents.size(1), options.in_channels);
  CHILIAD_CHECK_EQ(grid.rows * options.patch, latents.size(2));
  CHILIAD_CHECK_EQ(grid.columns * options.patch, latents.size(3));
  return {grid};
}

/// Of all grids one below the other, [patches, width]; those of like neighbours are made once.
at::Tensor sin_cos_positions(const spec::DiffusionOptions& options, const std::vector<Grid>& grids) {
  const int64_t base = options.sample_size / options.patch;
  std::vector<at::Tensor> parts;
  for (size_t i = 0; i < grids.size(); ++i) {
    const auto& [rows, columns] = grids[i];
    parts.push_back(i > 0 && grids[i] == grids[i - 1]
                        ? parts.back()
                        : ops::stretched_grid_positions(rows, columns, options.width(), base,
                                                        options.interpolation_scale));
  }
  return parts.size() == 1 ? parts[0] : at::cat(parts, 0);
}

std::vector<std::byte> bytes_of(const weights::WeightSource& source, const std::string& key) {
  std::vector<std::byte> bytes(static_cast<size_t>(source.find(key)->num_bytes()));
  source.read(key, bytes);
  return bytes;
}

/// That copies of a tensor are copies.
void check_repeats(const weights::WeightSource& source, const weights::KeyTable& keys) {
  for (const auto& tensor : source.tensors()) {
    const auto key = keys.translate(tensor.name);
    if (!key || !key->is_alias || source.find(key->name) == nullptr) continue;
    if (bytes_of(source, tensor.name) != bytes_of(source, key->name))
      throw InvalidInput(source.path().string(),
                         fmt::format("tensor '{}': expected a copy of '{}', got other values. The blocks of "
                                     "this file were trained with embedders of their own, which is not built",
                                     tensor.name, key->name));
  }
}

}  // namespace

std::unique_ptr<layers::Layer> make_diffusion_layer(const spec::LayerDecl& decl,
                                                    const spec::DiffusionOptions& options) {
  if (options.family == "dit") return make_dit_layer(decl, options);
  if (options.family == "pixart") return make_pixart_layer(decl, options);
  if (options.family == "sd3") return make_sd3_layer(decl, options);
  if (options.family == "flux") return make_flux_layer(decl, options);
  throw InternalError(decl.name, fmt::format("no diffusion family '{}'", options.family));
}

std::vector<std::unique_ptr<layers::Layer>> build_diffusion(const spec::DiffusionOptions& options) {
  std::vector<std::unique_ptr<layers::Layer>> built;
  for (const auto& decl : spec::families::diffusion_table(options).layers)
    built.push_back(make_diffusion_layer(decl, options));
  return built;
}

std::vector<std::vector<at::Tensor>> load_diffusion_weights(const spec::DiffusionOptions& options,
                                                            const std::filesystem::path& path,
                                                            at::ScalarType type) {
  const auto source = weights::WeightSource::open(path);
  const auto keys = weights::diffusion_keys(options);
  auto params = load_weights(spec::families::diffusion_table(options), source, keys, type);
  check_repeats(source, keys);
  return params;
}

layers::Carry make_diffusion_input(const spec::DiffusionOptions& options, const LatentBatch& batch) {
  layers::Carry carry;
  for (const Entry& entry : entries_of(options, batch)) {
    const bool given = entry.value->defined();
    if (given != entry.used && !(entry.optional && !given))
      throw InternalError("diffusion input",
                          fmt::format("family {}: entry '{}': expected {}, got {}", options.family,
                                      entry.name, entry.used ? "a tensor" : "none", given ? "one" : "none"));
    if (given) carry.set(entry.name, *entry.value);
  }
  const auto grids = grids_of(options, batch);
  const at::Device device = batch.latents.device();
  if (options.family == "dit" || options.family == "pixart")
    carry.set("image_positions", sin_cos_positions(options, grids).to(device));
  if (options.family == "sd3") {
    for (const Grid& grid : grids)
      CHILIAD_CHECK(grid.rows <= options.max_positions && grid.columns <= options.max_positions,
                    "latents are larger than the table of positions");
  }
  if (options.family == "flux") {
    const auto [cos, sin] =
        ops::axis_rotary_tables(flux_positions(batch.text.size(1), grids), options.rope_axes);
    carry.set("rope_cos", cos.to(device));
    carry.set("rope_sin", sin.to(device));
  }
  return carry;
}

}  // namespace chiliad::model
