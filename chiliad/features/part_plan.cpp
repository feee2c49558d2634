#include "chiliad/features/part_plan.h"

#include <fmt/core.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "chiliad/base/error.h"
#include "chiliad/io/file.h"
#include "chiliad/weights/configs/autoencoder.h"

namespace chiliad::features {
namespace {

constexpr size_t kPartSamples = 64;

/// Sums of values, in order.
class Moments {
 public:
  void add(std::span<const std::byte> bytes, DType dtype) {
    const auto size = static_cast<size_t>(dtype_bytes(dtype));
    for (size_t at = 0; at + size <= bytes.size(); at += size) {
      uint32_t bits = 0;
      std::memcpy(&bits, &bytes[at], size);
      const double value =
          static_cast<double>(std::bit_cast<float>(dtype == DType::kBF16 ? bits << 16U : bits));
      sum_ += value;
      squares_ += value * value;
      ++count_;
    }
  }
  [[nodiscard]] double mean() const { return count_ == 0 ? 0.0 : sum_ / static_cast<double>(count_); }
  [[nodiscard]] double deviation() const {
    if (count_ == 0) return 0.0;
    return std::sqrt(std::max(0.0, squares_ / static_cast<double>(count_) - mean() * mean()));
  }

 private:
  double sum_ = 0.0;
  double squares_ = 0.0;
  int64_t count_ = 0;
};

class Summariser {
 public:
  Summariser(const Identity& identity, ColumnSummary summary) : identity_(identity), summary_(summary) {}

  void add(const std::filesystem::path& path) {
    if (!io::stat_file(path).has_value())
      throw CorruptData(path.string(), "is missing from its column. Run `chiliad encode` again");
    const PartContent content = read_part(path, identity_.key());
    const auto file = io::File::open_read(path);
    for (const auto& entry : content.entries) {
      std::vector<std::byte> bytes(static_cast<size_t>(entry.num_bytes));
      file.read_at(entry.begin, bytes);
      if (hash64(std::span<const std::byte>(bytes)) != entry.checksum)
        throw CorruptData(
            path.string(),
            fmt::format("feature {} is damaged. Remove the file and encode again", entry.id.number));
      add(entry, bytes);
    }
    summary_.num_refused += static_cast<int64_t>(content.refused.size());
  }

  [[nodiscard]] ColumnSummary done() {
    summary_.mean = moments_.mean();
    summary_.deviation = moments_.deviation();
    return summary_;
  }

 private:
  void add(const FeatureEntry& entry, std::span<const std::byte> bytes) {
    ++summary_.num_features;
    summary_.num_bytes += entry.num_bytes;
    summary_.dtype = entry.dtype;
    if (identity_.kind == Kind::kText) {
      auto& channels = entry.id.second ? summary_.pooled_channels : summary_.channels;
      channels = entry.shape[entry.shape.rank() - 1];
      return;
    }
    summary_.distributions = entry.shape.rank() == 4;
    summary_.channels = entry.shape[summary_.distributions ? 1 : 0];
    moments_.add(bytes.first(bytes.size() / (summary_.distributions ? 2 : 1)), entry.dtype);
  }

  const Identity& identity_;
  ColumnSummary summary_;
  Moments moments_;
};

}  // namespace

std::vector<PartPlan> plan_parts(const index::Index& index, const stepplan::Plan& plan) {
  std::vector<PartPlan> parts;
  for (const auto& sample : plan.planned()) {
    const uint32_t shard = index.locate(sample.sample).shard;
    const bool same = !parts.empty() && parts.back().shard == shard;
    if (!same || parts.back().samples.size() == kPartSamples)
      parts.push_back({shard, same ? parts.back().number + 1 : 0, {}});
    parts.back().samples.push_back(sample);
  }
  return parts;
}

PartCounts count_parts(const index::Index& index, const std::vector<PartPlan>& parts) {
  PartCounts counts;
  for (const auto& shard : index.manifest().shards) counts.emplace_back(shard.content, 0);
  for (const auto& part : parts) ++counts[part.shard].second;
  return counts;
}

ColumnSummary summarise(const index::Index& index, const spec::RunFile& run, const Identity& identity,
                        const std::vector<PartPlan>& parts) {
  ColumnSummary summary;
  if (identity.kind == Kind::kLatents && is_python(run.encoders.pictures)) {
    summary.latent_pixels = run.model.latent_pixels;  // what it says is compared with the latents' sizes
  } else if (identity.kind == Kind::kLatents) {
    const auto options =
        weights::read_autoencoder_config(std::filesystem::path(run.encoders.pictures) / "config.json");
    summary.scaling_factor = options.scaling_factor;
    summary.shift_factor = options.shift_factor;
    summary.latent_pixels = options.factor();
  }
  const auto folder = column_folder(index, identity);
  Summariser summariser(identity, summary);
  for (const auto& part : parts)
    summariser.add(part_path(folder, index.manifest().shards[part.shard].content, part.number));
  if (identity.kind == Kind::kText) summariser.add(empty_text_path(folder));
  return summariser.done();
}

}  // namespace chiliad::features
