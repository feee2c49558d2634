#include "chiliad/loader/run_inputs.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "chiliad/base/error.h"
#include "chiliad/features/identity.h"
#include "chiliad/image/color.h"
#include "chiliad/io/file.h"
#include "chiliad/loader/cached_parts.h"
#include "chiliad/loader/conversations.h"
#include "chiliad/spec/shape_stages.h"
#include "chiliad/stepplan/work_model.h"
#include "chiliad/store/store.h"
#include "chiliad/text/byte_tokenizer.h"

namespace chiliad::loader {
namespace {

void check_vocabulary(const spec::RunFile& run, const text::Tokenizer& tokenizer) {
  const int64_t needed = tokenizer.vocabulary_size();
  if (run.model.vocabulary >= needed) return;
  throw InvalidInput(
      "model.vocabulary",
      fmt::format("expected at least the {} ids of the tokenizer, got {}. Set it to {} or more", needed,
                  run.model.vocabulary, needed));
}

std::shared_ptr<const text::DocumentEncoder> open_documents(const spec::RunFile& run) {
  if (!spec::is_language_model(run.model) || spec::reads_conversations(run.vision)) return nullptr;
  auto encoder = text::DocumentEncoder::open(run.data.tokenizer, run.data.end_token);
  check_vocabulary(run, encoder->tokenizer());
  return encoder;
}

/// Every picture has room in a pack.
void check_largest_picture(const spec::RunFile& run, const stepplan::PicturePositions& positions) {
  const int64_t text = spec::reads_captions(run.model) ? run.model.text_max_tokens : 0;
  if (run.data.bucket_no_upscale) return;  // `pack` refuses one that is too large
  for (const stepplan::Bucket bucket : stepplan::make_buckets(run.data)) {
    const int64_t needed = positions(bucket, text);
    if (needed <= run.data.micro_batch_tokens) continue;
    throw InvalidInput(
        "data.micro_batch_tokens",
        fmt::format("expected at least the {} positions of a picture of {} x {} pixels, got {}. "
                    "Raise it, or lower data.resolution",
                    needed, bucket.width, bucket.height, run.data.micro_batch_tokens));
  }
}

constexpr int64_t kMaxPacksBytes = int64_t{1} << 36;

std::shared_ptr<const stepplan::OfflinePacks> open_packs(const spec::DataOptions& data) {
  if (data.packs.empty()) return nullptr;
  const auto bytes = io::read_file(data.packs, kMaxPacksBytes);
  return std::make_shared<const stepplan::OfflinePacks>(
      stepplan::OfflinePacks::from_bytes(bytes, data.packs));
}

std::shared_ptr<const features::Column> open_column(const spec::RunFile& run, const index::Index& index,
                                                    features::Kind kind) {
  auto column = features::Column::open(index, features::identities_of(run, kind));
  column.check_model(run.model);
  return std::make_shared<const features::Column>(std::move(column));
}

std::filesystem::path cache_folder(const spec::RunFile& run, const index::Index& index) {
  if (!run.store.folder.empty()) return run.store.folder;
  throw InvalidInput("store.folder",
                     fmt::format("expected a folder on a disk of this machine for blocks of {}, got none. "
                                 "Set it: --set store.folder=DIR (docs/guides/object-storage.md)",
                                 remote_roots(index).front()));
}

}  // namespace

index::Index open_index(const spec::DataOptions& data) {
  if (data.sources.empty()) return index::Index::open(data.index);
  std::vector<index::Index> indexes;
  for (const auto& source : stepplan::leaves_of(data.sources)) {
    indexes.push_back(index::Index::open(source.index));
  }
  return index::Index::concatenate(std::move(indexes));
}

std::shared_ptr<index::PartSource> open_source(const spec::RunFile& run, const index::Index& index,
                                               std::function<void()> take_over) {
  if (remote_roots(index).empty()) return nullptr;
  // The owner answers within its own deadline: that a block arrived wrong may take it twice.
  constexpr double kMargin = 30.0;
  store::CacheClient::Options options;
  options.folder = cache_folder(run, index);
  options.take_over = std::move(take_over);
  options.deadline = Nanoseconds(static_cast<int64_t>((2.0 * run.store.deadline_s + kMargin) * 1e9));
  return std::make_shared<CachedParts>(index, std::move(options));
}

store::CacheOptions cache_options(const spec::RunFile& run, const index::Index& index, int64_t num_readers) {
  const spec::StoreOptions& own = run.store;
  const auto seconds = [](double value) { return Nanoseconds(static_cast<int64_t>(value * 1e9)); };
  store::CacheOptions options;
  options.folder = cache_folder(run, index);
  options.max_bytes = own.bytes;
  options.num_readers = static_cast<int>(num_readers) + 1;
  options.prefetchers = static_cast<int>(std::min<int64_t>(own.connections, 8));
  options.retry.deadline = seconds(own.deadline_s);
  options.retry.attempt_timeout = seconds(std::max(60.0, 2.0 * own.stall_s));
  options.retry.requests_per_second = own.requests_per_second;
  options.retry.connections = own.connections;
  return options;
}

std::map<std::string, std::string> store_profiles(const spec::RunFile& run, const index::Index& index) {
  std::map<std::string, std::string> profiles;
  const auto leaves = stepplan::leaves_of(run.data.sources);
  for (size_t s = 0; s < leaves.size(); ++s) {
    const std::string& root = index.members()[s].root;
    if (!store::is_remote(root)) {
      if (leaves[s].profile.empty()) continue;
      throw InvalidInput("data.sources: " + leaves[s].name,
                         fmt::format("profile: expected none for data in files ({}), got {}. Remove it", root,
                                     leaves[s].profile));
    }
    const auto [at, is_new] = profiles.try_emplace(root, leaves[s].profile);
    if (is_new || at->second == leaves[s].profile) continue;
    throw InvalidInput("data.sources: " + leaves[s].name,
                       fmt::format("profile: expected one for {}, got '{}' and '{}'. Change one of them",
                                   root, at->second, leaves[s].profile));
  }
  std::erase_if(profiles, [](const auto& entry) { return entry.second.empty(); });
  return profiles;
}

RunInputs open_inputs(const spec::RunFile& run, const index::Index& index, std::function<void()> take_over) {
  RunInputs inputs;
  inputs.source = open_source(run, index, std::move(take_over));
  inputs.documents = open_documents(run);
  inputs.conversations = open_conversations(run);
  if (inputs.conversations != nullptr) check_vocabulary(run, inputs.conversations->encoder->tokenizer());
  for (const features::Kind kind : features::kinds_of(run)) {
    auto& place = kind == features::Kind::kLatents ? inputs.columns.latents : inputs.columns.text;
    place = open_column(run, index, kind);
  }
  return inputs;
}

stepplan::Plan open_plan(const spec::RunFile& run, const index::Index& index, const RunInputs& inputs,
                         stepplan::PlanPart part, const PlanProgress& progress) {
  const auto packs = open_packs(run.data);
  stepplan::PictureCounts pictures;
  const auto plan = [&](stepplan::TokenCount counts, const Digest& counted = {},
                        const Digest& documents = {}) {
    stepplan::PlanFiles files;
    files.counted = counted;
    files.packs = packs;
    files.progress = progress;
    files.pictures = pictures;
    return stepplan::Plan(index, run.data, run.run.seed, std::move(counts), documents, part, files);
  };
  if (inputs.conversations != nullptr) {
    const text::ConversationKeys keys = inputs.conversations->encoder->keys();
    pictures = {stepplan::column_counts(index, keys.positions), stepplan::column_counts(index, keys.tiles)};
    return plan(stepplan::column_counts(index, keys.ids), keys.ids, keys.ids);
  }
  if (inputs.documents != nullptr) {
    const Digest digest = inputs.documents->digest();
    return plan(stepplan::column_counts(index, digest), digest, digest);
  }
  if (const auto column = inputs.columns.text; column != nullptr)
    return plan([column](uint32_t shard, uint32_t caption) { return column->token_count(shard, caption); });
  if (run.model.family != "pixel_dit") return plan([](uint32_t, uint32_t) { return 1U; });
  const Digest digest = text::ByteTokenizer(run.model.text_max_tokens).digest();
  return plan(stepplan::column_counts(index, digest), digest);
}

LoaderOptions loader_options(const spec::RunFile& run, const RunInputs& inputs, const spec::Rates& rates,
                             int rank, int num_ranks) {
  if (run.data.mode == "pad")
    throw InvalidInput(
        "data.mode",
        "expected bucket or pack for training, got pad, which is for `chiliad data plan`. Change it");
  LoaderOptions options;
  options.rank = rank;
  options.pack = pack_options(run, rates, num_ranks);
  options.documents = inputs.documents;
  options.conversations = inputs.conversations;
  options.columns = inputs.columns;
  options.source = inputs.source;
  if (inputs.source != nullptr) {
    const double most = 2.0 * run.store.deadline_s + 60.0;
    options.read_deadline = std::max(options.read_deadline, Nanoseconds(static_cast<int64_t>(most * 1e9)));
  }
  options.classes = run.model.classes;
  if (inputs.documents != nullptr) options.sequence_length = run.data.sequence_length;
  options.num_threads = static_cast<int>(run.data.loader_threads);
  options.tune = run.data.loader_tune;
  options.max_threads = static_cast<int>(run.data.loader_threads_max);
  options.item_deadline =
      std::chrono::duration_cast<Nanoseconds>(std::chrono::duration<double>(run.data.item_deadline_s));
  options.skip_unavailable = run.data.on_unavailable == "skip";
  options.prefetch_steps = run.data.prefetch_steps;
  options.prefetch_bytes = run.data.prefetch_bytes;
  options.cache_bytes = run.data.cache_bytes;
  options.max_tokens = run.model.text_max_tokens;
  options.pictures = picture_options(run.data);
  return options;
}

PictureOptions picture_options(const spec::DataOptions& data) {
  PictureOptions options;
  options.background = image::parse_color(data.background);
  options.to_srgb = data.to_srgb;
  options.dct_margin = data.dct_margin;
  options.jitter = {data.jitter_brightness, data.jitter_contrast, data.jitter_saturation};
  return options;
}

stepplan::PackOptions pack_options(const spec::RunFile& run, const spec::Rates& rates, int num_ranks) {
  stepplan::PackOptions options;
  options.num_ranks = num_ranks;
  options.max_items = run.data.micro_batch_items;
  if (!run.data.stages.empty()) {
    int32_t first_bucket = 0;
    for (const spec::DataOptions& stage : spec::stage_options(run.data)) {
      options.stage_items.push_back({first_bucket, stage.micro_batch_items});
      first_bucket += static_cast<int32_t>(stepplan::make_buckets(stage).size());
    }
  }
  const bool packs = run.data.mode == "pack";
  options.pad = run.data.mode == "pad";
  options.sync = run.parallel.dp_shard > 1 ? stepplan::Sync::kSlot : stepplan::Sync::kStep;
  if (packs) options.max_tokens = run.data.micro_batch_tokens;
  if (spec::is_language_model(run.model)) {
    options.max_tokens = run.data.micro_batch_tokens;
    options.row_work = stepplan::make_row_work(run.model, rates);
    if (spec::reads_conversations(run.vision)) add_vision_work(run.vision, rates, options);
    return options;
  }
  options.work = stepplan::make_work_model(run.model, rates);
  options.components = stepplan::balanced_components(run.model);
  if (!options.components.empty()) options.component_work = stepplan::make_component_work(run.model, rates);
  if (!packs) return options;
  options.positions = stepplan::make_picture_positions(run.model);
  check_largest_picture(run, options.positions);
  return options;
}

}  // namespace chiliad::loader
