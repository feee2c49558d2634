#include "chiliad/stepplan/plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/base/planted.h"
#include "chiliad/base/rng.h"
#include "chiliad/index/plan_columns.h"
#include "chiliad/spec/shape_stages.h"
#include "chiliad/stepplan/item_tokens.h"

namespace chiliad::stepplan {
namespace {

/// Nothing where nothing is held out: the digests of runs from before it existed stay.
void add_held_out(const spec::DataOptions& options, Hasher& hasher) {
  if (options.held_out > 0) hasher.add("held out").add(options.held_out);
}

/// Settings of pictures are no content of documents.
Digest documents_digest_of(const spec::DataOptions& options, const Digest& encoder) {
  Hasher hasher;
  hasher.add("plan 1 of documents").add(encoder).add(options.sequence_length).add(options.batch);
  hasher.add(static_cast<int64_t>(options.languages.size()));
  for (const std::string& language : options.languages) hasher.add(language);
  hasher.add(options.limit).add(options.order).add(options.window_blocks);
  add_held_out(options, hasher);
  return hasher.digest();
}

/// Added only where used, so that runs from before these options existed resume.
void add_transforms(const spec::DataOptions& options, Hasher& hasher) {
  if (options.to_srgb) hasher.add("to_srgb");
  if (options.dct_margin != 0.0) hasher.add("dct_margin").add(options.dct_margin);
  if (options.jitter_brightness == 0.0 && options.jitter_contrast == 0.0 && options.jitter_saturation == 0.0)
    return;
  hasher.add("jitter").add(options.jitter_brightness).add(options.jitter_contrast);
  hasher.add(options.jitter_saturation);
}

/// What a stage is, not what its settings say beside that.
void add_stages(const spec::DataOptions& options, Hasher& hasher) {
  if (options.stages.empty()) return;
  hasher.add("stages").add(static_cast<int64_t>(options.stages.size()));
  const auto stages = spec::stage_options(options);
  for (size_t s = 1; s < stages.size(); ++s) {
    const spec::DataOptions& stage = stages[s];
    hasher.add(options.stages[s - 1].from).add(stage.buckets).add(stage.resolution).add(stage.bucket_step);
    hasher.add(stage.bucket_min).add(stage.bucket_max);
  }
}

Digest content_digest_of(const spec::DataOptions& options, const Digest& documents) {
  if (documents != Digest{}) return documents_digest_of(options, documents);
  Hasher hasher;
  hasher.add("plan 1").add(options.batch).add(options.resolution).add(options.bucket_step);
  hasher.add(options.bucket_min).add(options.bucket_max).add(options.max_aspect_error);
  hasher.add(static_cast<int64_t>(options.languages.size()));
  for (const std::string& language : options.languages) hasher.add(language);
  hasher.add(options.limit).add(options.order).add(options.window_blocks).add(options.shape_clusters);
  hasher.add(options.flip ? 1 : 0).add(options.crop).add(options.background);
  add_held_out(options, hasher);
  add_buckets(options, hasher);
  add_transforms(options, hasher);
  add_stages(options, hasher);
  return hasher.digest();
}

void check_options(const spec::DataOptions& options) {
  const auto at_least = [](const char* name, int64_t value, int64_t low) {
    if (value < low)
      throw InvalidInput("data", fmt::format("{}: expected at least {}, got {}", name, low, value));
  };
  at_least("batch", options.batch, 1);
  at_least("limit", options.limit, 0);
  at_least("held_out", options.held_out, 0);
  at_least("window_blocks", options.window_blocks, 1);
  at_least("shape_clusters", options.shape_clusters, 1);
  at_least("sequence_length", options.sequence_length, 1);
  if (options.mode != "bucket" && options.mode != "pack" && options.mode != "pad") {
    throw InvalidInput("data.mode", fmt::format("expected bucket, pack or pad, got '{}'", options.mode));
  }
  if (options.crop != "center" && options.crop != "random") {
    throw InvalidInput("data.crop", fmt::format("expected center or random, got '{}'", options.crop));
  }
}

std::string words_of(const std::vector<SourceIdentity>& sources) {
  std::string words;
  for (const auto& source : sources)
    words += fmt::format("{}{} {}", words.empty() ? "" : ", ", source.name, source.data.hex().substr(0, 12));
  return words.empty() ? "one index" : words;
}

/// Only where there are several: the digests of runs from before that stay.
void add_sources(const std::vector<spec::DataSource>& sources, Hasher& hasher) {
  hasher.add(static_cast<int64_t>(sources.size()));
  for (const auto& source : sources) {
    hasher.add(source.name).add(source.ramp ? 1 : 0).add(source.epochs);
    hasher.add(static_cast<int64_t>(source.weight.size()));
    for (const auto& point : source.weight) hasher.add(point.step).add(point.weight);
    hasher.add(static_cast<int64_t>(source.languages.size()));
    for (const std::string& language : source.languages) hasher.add(language);
    add_sources(source.sources, hasher);
  }
}

Digest with_sources(const spec::DataOptions& options, const Digest& content) {
  if (options.sources.empty()) return content;
  Hasher hasher;
  hasher.add("plan 1 of sources").add(content).add(options.mixing);
  if (options.mixing == "temperature") hasher.add(options.mixing_alpha);
  add_sources(options.sources, hasher);
  return hasher.digest();
}

/// So that a source has an order of its own, whatever stands beside it.
uint64_t seed_of(uint64_t seed, const std::string& source) {
  return source.empty() ? seed : mix64(seed ^ hash64(source));
}

/// Columns one after another.
class ColumnsInARow : public index::SampleColumns {
 public:
  explicit ColumnsInARow(std::vector<std::unique_ptr<index::SampleColumns>> parts)
      : parts_(std::move(parts)) {
    for (const auto& part : parts_) first_block_.push_back(first_block_.back() + part->num_blocks());
  }
  [[nodiscard]] int64_t num_samples() const override {
    int64_t sum = 0;
    for (const auto& part : parts_) sum += part->num_samples();
    return sum;
  }
  [[nodiscard]] int64_t num_blocks() const override { return first_block_.back(); }
  void read(int64_t block, index::BlockRows& rows) const override {
    const size_t part = part_of(block);
    parts_[part]->read(block - first_block_[part], rows);
  }
  void will_need(const std::vector<int64_t>& blocks) const override {
    std::vector<std::vector<int64_t>> of_parts(parts_.size());
    for (const int64_t block : blocks)
      of_parts[part_of(block)].push_back(block - first_block_[part_of(block)]);
    for (size_t p = 0; p < parts_.size(); ++p) parts_[p]->will_need(of_parts[p]);
  }

 private:
  [[nodiscard]] size_t part_of(int64_t block) const {
    const auto after = std::upper_bound(first_block_.begin(), first_block_.end(), block);
    return static_cast<size_t>(after - first_block_.begin() - 1);
  }

  std::vector<std::unique_ptr<index::SampleColumns>> parts_;
  std::vector<int64_t> first_block_{0};
};

}  // namespace

Plan::Plan(const index::Index& index, const spec::DataOptions& options, uint64_t seed, TokenCount tokens,
           const Digest& documents, PlanPart part, const PlanFiles& files)
    : index_(index),
      options_(options),
      of_documents_(documents != Digest{}),
      seed_(seed),
      tokens_(tokens),
      table_(of_documents_ ? std::nullopt : std::make_optional<StagedBuckets>(options)),
      buckets_(of_documents_ ? std::vector<Bucket>{{}} : table_->buckets()),
      content_(with_sources(options, content_digest_of(options, documents))) {
  check_options(options);
  CHILIAD_CHECK(!of_documents_ || options.mode != "bucket", "documents in mode {}", options.mode);
  if (part == PlanPart::kHeldOut) {
    options_.order = "sequential";
    options_.shape_clusters = 1;
  }
  const auto leaves = leaves_of(options.sources);
  const size_t num_members = index.members().size();
  CHILIAD_CHECK(leaves.empty() || leaves.size() == num_members, "{} sources, {} indexes", leaves.size(),
                num_members);
  if (leaves.empty() || options.mixing == "concatenate") {
    add_source(0, num_members, {}, tokens, files, part);
  } else {
    for (size_t s = 0; s < leaves.size(); ++s) add_source(s, s + 1, leaves[s], tokens, files, part);
  }
  check_items();
  if (part == PlanPart::kTraining) packs_ = files.packs;
  if (packs_ != nullptr) {
    take_packs(documents);
    return;
  }
  mix(part);
}

Plan::~Plan() = default;
Plan::Plan(Plan&&) noexcept = default;

std::unique_ptr<index::SampleColumns> Plan::open_columns(size_t member, const TokenCount& tokens,
                                                         const PlanFiles& files,
                                                         std::filesystem::path& folder) const {
  const auto& place = index_.members()[member];
  if (index_.is_loaded() && !files.always)
    return std::make_unique<index::IndexColumns>(index_, place.first_shard, place.end_shard);
  folder = index::plan_columns_folder(files.folder.empty() ? place.folder : files.folder, place.digest,
                                      files.counted);
  if (!index::has_plan_columns(folder)) {
    index::make_plan_columns(index_, place.first_shard, place.end_shard, folder,
                             files.counted == Digest{} ? index::CountTokens() : tokens, files.progress);
  }
  std::vector<int64_t> first_samples;
  for (uint32_t shard = place.first_shard; shard <= place.end_shard; ++shard)
    first_samples.push_back(index_.first_sample(shard));
  return std::make_unique<index::PlanColumns>(folder, std::move(first_samples), place.first_shard);
}

void Plan::add_source(size_t first_member, size_t end_member, const spec::DataSource& leaf,
                      const TokenCount& tokens, const PlanFiles& files, PlanPart part) {
  SourceInputs inputs;
  inputs.options = options_;
  if (!leaf.languages.empty()) inputs.options.languages = leaf.languages;
  std::vector<std::unique_ptr<index::SampleColumns>> columns;
  for (size_t m = first_member; m < end_member; ++m)
    columns.push_back(open_columns(m, tokens, files, inputs.table.folder));
  inputs.columns =
      columns.size() == 1 ? std::move(columns.front()) : std::make_unique<ColumnsInARow>(std::move(columns));
  inputs.shapes = table_;
  inputs.of_documents = of_documents_;
  inputs.tokens = tokens;
  inputs.pictures = files.pictures;
  inputs.seed = seed_of(seed_, leaf.name);
  inputs.table.held_out = options_.held_out;
  inputs.table.limit = options_.limit;
  inputs.table.part = part;
  inputs.table.progress = files.progress;
  inputs.table.first_sample = index_.members()[first_member].first_sample;
  source_options_.push_back(inputs.options);
  sources_.push_back(std::make_unique<ItemSource>(std::move(inputs)));
  const Coverage& coverage = sources_.back()->table().coverage;
  coverage_ += coverage;
  summaries_.push_back({leaf.name, coverage, index_.members()[first_member].first_sample,
                        index_.members()[end_member - 1].end_sample});
}

void Plan::check_items() const {
  for (const auto& source : summaries_) {
    const Coverage& coverage = source.coverage;
    if (coverage.in_order > 0) continue;
    throw InvalidInput(
        source.name.empty() ? "data" : "data.sources: " + source.name,
        fmt::format("no item is left of {} in the index: {} bad images, {} without a caption in "
                    "data.languages, {} beyond data.max_aspect_error, {} too small for data.buckets, {} "
                    "documents without a target",
                    coverage.in_index, coverage.bad_image, coverage.no_caption, coverage.aspect,
                    coverage.too_small, coverage.too_short));
  }
}

void Plan::mix(PlanPart part) {
  if (options_.sources.empty() || options_.mixing == "concatenate" || part == PlanPart::kHeldOut) {
    first_step_.push_back(0);
    for (const auto& source : sources_)
      first_step_.push_back(first_step_.back() + source->order().steps_per_epoch());
    steps_per_epoch_ = first_step_.back();
    return;
  }
  if (options_.shape_clusters > 1) {
    throw InvalidInput(
        "data.shape_clusters",
        fmt::format("expected 1 where data.sources are mixed by weights, got {}. Set data.mixing to "
                    "concatenate, or leave it out",
                    options_.shape_clusters));
  }
  const auto leaves = leaves_of(options_.sources);
  std::vector<int64_t> sizes;
  Mixer::Options options;
  options.batch = options_.batch;
  for (size_t s = 0; s < sources_.size(); ++s) {
    sizes.push_back(sources_[s]->num_items());
    options.available.push_back(leaves[s].epochs > 0 ? leaves[s].epochs * sizes.back() : -1);
  }
  mixer_ = std::make_unique<Mixer>(SourceShares(options_, sizes), options);
  steps_per_epoch_ = (items_per_epoch() + options_.batch - 1) / options_.batch;
}

std::vector<int64_t> block_ends(const index::Index& index) {
  // Samples outside of every block would be lost: a block reaches to the first sample of the next one.
  std::vector<int64_t> ends;
  int64_t first = 0;
  for (const index::Shard& shard : index.shards()) {
    for (size_t b = 1; b < shard.blocks.size(); ++b) ends.push_back(first + shard.blocks[b].first_sample);
    first += static_cast<int64_t>(shard.samples.size());
    ends.push_back(first);
  }
  return ends;
}

void Plan::take_packs(const Digest& documents) {
  const std::string place = options_.packs.empty() ? "the packs" : options_.packs;
  if (sources_.size() > 1)
    throw InvalidInput("data.packs",
                       "expected one source, or data.mixing: concatenate, got sources that are "
                       "mixed step by step. Leave packs or the weights out");
  if (!options_.stages.empty())
    throw InvalidInput(
        "data.packs",
        "expected no data.stages, whose shapes the packs do not have, got some. Leave packs or "
        "stages out");
  check_packs(packs_->identity(), packs_identity(index_.manifest().digest, documents, options_), place);
  std::vector<int64_t> packed;
  for (int64_t p = 0; p < packs_->num_packs(); ++p)
    packed.insert(packed.end(), packs_->samples(p).begin(), packs_->samples(p).end());
  std::sort(packed.begin(), packed.end());
  if (packed != samples())
    throw CorruptData("data.packs",
                      fmt::format("expected each of the {} samples in one pack, got {} places. Make it "
                                  "again with `chiliad data pack`",
                                  items_per_epoch(), packed.size()));
  content_ = Hasher().add(content_).add("packs").add(packs_->digest()).digest();
  block_ends_ = block_ends(index_);
  std::vector<uint32_t> packs_of_windows;
  int64_t first = 0;
  for (const int64_t size : packs_->group_sizes()) {
    packs_of_windows.push_back(static_cast<uint32_t>(size));
    first_pack_.push_back(first);
    first += size;
  }
  // A window is one of those that were packed together.
  pack_order_ = std::make_unique<Order>(std::move(packs_of_windows),
                                        OrderOptions{parse_order(options_.order), 1, options_.batch, seed_});
  steps_per_epoch_ = pack_order_->steps_per_epoch();
}

std::vector<spec::DataOptions> Plan::stage_options() const {
  if (of_documents_) return {options_};
  return spec::stage_options(options_);
}

int64_t Plan::num_windows() const {
  if (pack_order_ != nullptr) return static_cast<int64_t>(pack_order_->windows().size());
  int64_t sum = 0;
  for (const auto& source : sources_) sum += static_cast<int64_t>(source->order().windows().size());
  return sum;
}

std::optional<int64_t> Plan::num_steps() const {
  return mixer_ == nullptr ? std::nullopt : mixer_->num_steps();
}

std::vector<uint32_t> Plan::captions_of(int64_t sample) const {
  const auto [shard_number, row] = index_.locate(sample);
  const auto shard = index_.shard(shard_number);
  const auto& own = shard->samples.at(row);
  size_t source = 0;
  while (sample >= summaries_[source].end_sample) ++source;
  const Usable usable(source_options_[source], {}, of_documents_, nullptr);
  std::vector<uint32_t> choices;
  for (uint32_t c = own.first_caption; usable.draws_captions() && c < own.first_caption + own.num_captions;
       ++c)
    if (usable.wanted(shard->captions[c].language)) choices.push_back(c);
  return choices;
}

uint32_t Plan::longest_tokens(int64_t sample) const {
  const uint32_t shard = index_.locate(sample).shard;
  uint32_t longest = 1;
  for (const uint32_t caption : captions_of(sample)) {
    longest =
        std::max(longest, item_tokens(tokens_(shard, caption), of_documents_, options_.sequence_length));
  }
  return longest;
}

std::vector<int64_t> Plan::samples() const {
  std::vector<int64_t> numbers;
  for (const auto& source : sources_) {
    const auto own = source->samples();
    numbers.insert(numbers.end(), own.begin(), own.end());
  }
  return numbers;
}

std::vector<Plan::Planned> Plan::planned() const {
  std::vector<Planned> list;
  for (const auto& source : sources_) source->append_planned(list);
  return list;
}

Step Plan::select_from_row(int64_t step) const {
  Step selected;
  selected.epoch = step / steps_per_epoch_;
  const int64_t in_epoch = step % steps_per_epoch_;
  const auto after = std::upper_bound(first_step_.begin(), first_step_.end(), in_epoch);
  const auto source = static_cast<size_t>(after - first_step_.begin() - 1);
  selected.window =
      sources_[source]->step_items(selected.epoch, in_epoch - first_step_[source], step, selected.items);
  for (size_t s = 0; s < source; ++s)
    selected.window += static_cast<int64_t>(sources_[s]->order().windows().size());
  return selected;
}

Step Plan::select_packs(int64_t step) const {
  Step selected;
  selected.epoch = step / steps_per_epoch_;
  const int64_t in_epoch = step % steps_per_epoch_;
  selected.window = pack_order_->window_of(in_epoch);
  const Window& window = pack_order_->windows()[static_cast<size_t>(selected.window)];
  const int64_t j = in_epoch - window.first_step;
  int32_t number = 0;
  for (const ItemPlace place :
       pack_order_->items(selected.epoch, selected.window, window.step_start(j), window.step_start(j + 1))) {
    const size_t first = selected.items.size();
    for (const int64_t sample : packs_->samples(first_pack_[place.block] + place.item)) {
      const auto block =
          std::upper_bound(block_ends_.begin(), block_ends_.end(), sample) - block_ends_.begin();
      sources_.front()->sample_item(selected.epoch, block, sample, selected.items);
    }
    for (size_t i = first; i < selected.items.size(); ++i) selected.items[i].pack = number;
    ++number;
  }
  return selected;
}

std::vector<int64_t> Plan::given_before(int64_t step) const {
  if (mixer_ != nullptr) return mixer_->given_before(step);
  std::vector<int64_t> given(sources_.size(), step / steps_per_epoch_);
  for (size_t s = 0; s < given.size(); ++s) given[s] *= sources_[s]->num_items();
  return given;
}

Step Plan::select(int64_t step, const Journal& journal) const {
  CHILIAD_CHECK_GE(step, 0);
  Step selected;
  if (mixer_ == nullptr) {
    selected = pack_order_ != nullptr ? select_packs(step) : select_from_row(step);
  } else {
    if (const auto end = num_steps(); end && step >= *end) {
      throw InvalidInput(
          "data.sources",
          fmt::format("expected a step below {}, after which all sources have shown their epochs, got {}. "
                      "Lower run.steps, or raise the epochs of a source",
                      *end, step));
    }
    selected.epoch = step / steps_per_epoch_;
    auto first = mixer_->given_before(step);
    if (planted_bug("mixed_items_twice"))
      for (int64_t& item : first) item = std::max<int64_t>(0, item - 1);
    const auto last = mixer_->given_before(step + 1);
    for (size_t s = 0; s < sources_.size(); ++s)
      sources_[s]->row_items(first[s], last[s], step, selected.items);
  }
  selected.step = step;
  for (uint32_t i = 0; i < selected.items.size(); ++i) {
    Item& item = selected.items[i];
    item.position = i;
    item.weight = journal.weight(item.sample, step);
  }
  return selected;
}

Cursor Plan::cursor(int64_t next_step, const Journal& journal) const {
  Cursor cursor;
  cursor.data = index_.manifest().digest;
  cursor.content = content_;
  cursor.seed = seed_;
  cursor.next_step = planted_bug("cursor_off_by_one") ? next_step + 1 : next_step;
  cursor.journal = journal.digest();
  if (options_.sources.empty()) return cursor;
  const auto leaves = leaves_of(options_.sources);
  for (size_t s = 0; s < leaves.size(); ++s)
    cursor.sources.push_back({leaves[s].name, index_.members()[s].digest});
  return cursor;
}

void Plan::check_resumable(const Cursor& cursor) const {
  std::string differing;
  const auto compare = [&](const char* name, const std::string& saved, const std::string& now) {
    if (saved == now) return;
    if (!differing.empty()) differing += "; ";
    differing += fmt::format("{}: was {}, is {}", name, saved, now);
  };
  const Cursor now = this->cursor(0, {});
  if (now.sources.empty() && cursor.sources.empty()) {
    compare("data.index (what the data set holds)", cursor.data.hex(), index_.manifest().digest.hex());
  } else {
    compare("data.sources", words_of(cursor.sources), words_of(now.sources));
  }
  compare("data (settings that decide content)", cursor.content.hex(), content_.hex());
  compare("run.seed", std::to_string(cursor.seed), std::to_string(seed_));
  if (differing.empty()) return;
  throw InvalidInput("resume",
                     fmt::format("the order of items would differ: {}. Restore these settings, or start "
                                 "a new run",
                                 differing));
}

}  // namespace chiliad::stepplan
