#pragma once

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <vector>

#include "chiliad/base/rng.h"
#include "chiliad/features/column.h"
#include "chiliad/features/part_plan.h"
#include "chiliad/io/file.h"
#include "chiliad/spec/run_file.h"
#include "chiliad/stepplan/plan.h"

namespace chiliad::test {

/// A feature of normal values that depend on its name alone.
inline features::Feature drawn_feature(features::FeatureId id, const Shape& shape, uint64_t purpose) {
  features::Feature feature{id, DType::kF32, shape, {}};
  std::vector<float> values(static_cast<size_t>(shape.count()));
  Rng rng({purpose, id.number, id.second ? uint64_t{1} : uint64_t{0}});
  rng.fill_normal(values);
  feature.bytes.resize(values.size() * sizeof(float));
  std::memcpy(feature.bytes.data(), values.data(), feature.bytes.size());
  return feature;
}

/// Columns as `chiliad encode` leaves them for a run on latents of 4 channels and 4 pixels a side, drawn
/// instead of encoded: captions of 1 to 11 tokens, or of text_max_tokens where the family pads them.
inline void write_latent_columns(const spec::RunFile& run, const index::Index& index) {
  constexpr int32_t kPixels = 4;
  const stepplan::Plan plan(index, run.data, run.run.seed, [](uint32_t, uint32_t) { return 1U; });
  const auto parts = features::plan_parts(index, plan);
  const bool pads = spec::pads_captions(run.model);
  for (const auto kind : features::kinds_of(run)) {
    const auto identity = features::identity_of(run, kind);
    const auto folder = features::column_folder(index, identity);
    io::make_folders(folder);
    const auto add_text = [&](features::Part& content, uint32_t number) {
      const int64_t tokens = pads ? run.model.text_max_tokens : 1 + number * 7 % 11;
      content.features.push_back(drawn_feature({number, false}, {tokens, run.model.text_channels}, 2));
      if (run.model.pooled_channels > 0)
        content.features.push_back(drawn_feature({number, true}, {run.model.pooled_channels}, 3));
    };
    for (const auto& part : parts) {
      features::Part content;
      const int64_t first = index.locate(part.samples.front().sample).sample;
      const int64_t base = part.samples.front().sample - first;
      for (const auto& [sample, bucket] : part.samples) {
        if (kind == features::Kind::kText) {
          for (const uint32_t caption : plan.captions_of(sample)) add_text(content, caption);
          continue;
        }
        const auto size = plan.buckets()[static_cast<size_t>(bucket)];
        for (const bool flipped : {false, true}) {
          content.features.push_back(drawn_feature({static_cast<uint32_t>(sample - base), flipped},
                                                   {4, size.height / kPixels, size.width / kPixels}, 1));
        }
      }
      const Digest shard = index.shards()[part.shard].content;
      const auto path = features::part_path(folder, shard, part.number);
      io::make_folders(path.parent_path());
      features::write_part(path, identity.key(), content);
    }
    if (kind == features::Kind::kText) {
      features::Part empty;
      add_text(empty, 0);
      features::write_part(features::empty_text_path(folder), identity.key(), empty);
    }
    const auto summary = features::summarise(index, run, identity, parts);
    features::finish_column(folder, identity, features::count_parts(index, parts), summary);
  }
}

}  // namespace chiliad::test
