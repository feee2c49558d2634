// Random settings, a run on 8 ranks that stops anywhere and goes on at other numbers of them: the items of
// all its steps, as the ranks have them, are those of a slow and plain model, bit by bit the same, and each
// once an epoch.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>

#include "chiliad/base/rng.h"
#include "tests/support/document_index.h"
#include "tests/support/synthetic_index.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/stepplan/order_model.h"

namespace chiliad::stepplan {
namespace {

constexpr std::array<int, 6> kResumed{1, 2, 3, 5, 16, 64};

/// One random run.
class ExactRun {
 public:
  explicit ExactRun(uint64_t seed) : rng_({seed, 0x6578616374ULL}), seed_(rng_.next_u64()) {
    documents_ = one_in(4);
    packs_pictures_ = !documents_ && one_in(4);
    mixed_ = one_in(2);
    const int count = mixed_ ? 2 + static_cast<int>(rng_.below(3)) : 1;
    std::vector<index::Index> indexes;
    for (int s = 0; s < count; ++s) indexes.push_back(make_index());
    index_.emplace(index::Index::concatenate(std::move(indexes)));
    choose_options();
    tokens_ = documents_ ? test::document_tokens(*index_) : test::byte_tokens(*index_);
    for (const auto& member : index_->members())
      models_.emplace_back(*index_, member.first_shard, member.end_shard, options_,
                           source_seed(models_.size()), documents_ ? &tokens_ : nullptr);
  }

  /// A plan as a new process makes it; from files where the run has them.
  Plan plan() const {
    PlanFiles files;
    files.always = on_disk_;
    files.folder = folder_.path();
    return {*index_, options_, seed_, tokens_, documents_ ? Digest{1, 2} : Digest{}, PlanPart::kTraining,
            files};
  }

  void check() {
    const Plan first = plan();
    const int64_t end = std::min<int64_t>(first.num_steps().value_or(1000), 2 * first.steps_per_epoch() + 3);
    const auto stop = static_cast<int64_t>(rng_.below(static_cast<uint64_t>(end)));
    journal_.add({static_cast<int64_t>(rng_.below(static_cast<uint64_t>(end))),
                  first.select(0, {}).items[0].sample, "bad"});
    std::vector<Digest> digests;
    for (int64_t step = 0; step < end; ++step) digests.push_back(check_step(first, step));
    for (int64_t step = 0; step < stop; ++step)
      ASSERT_EQ(of_ranks(first, step, 8), digests[static_cast<size_t>(step)]);
    const Cursor cursor = Cursor::from_json(first.cursor(stop, journal_).to_json());
    for (const int ranks : kResumed) {
      const Plan again = plan();
      again.check_resumable(cursor);
      for (int64_t step = cursor.next_step; step < std::min(end, cursor.next_step + 7); ++step)
        ASSERT_EQ(of_ranks(again, step, ranks), digests[static_cast<size_t>(step)])
            << ranks << " ranks, step " << step;
      const auto anywhere = static_cast<int64_t>(rng_.below(static_cast<uint64_t>(end)));
      ASSERT_EQ(again.select(anywhere, journal_).digest(), digests[static_cast<size_t>(anywhere)]);
    }
  }

 private:
  bool one_in(uint64_t n) { return rng_.below(n) == 0; }

  index::Index make_index() {
    const auto count = static_cast<int64_t>(150 + rng_.below(400));
    if (documents_) return test::document_index(count, 300, rng_.next_u64());
    auto shards = test::synthetic_index(
                      test::draw_sizes({{100, 100, 10}, {100, 170, 33}, {300, 110, 5}, {200, 120, 60}}, count,
                                       rng_.next_u64()),
                      60 + static_cast<uint32_t>(rng_.below(100)), 3 + static_cast<uint32_t>(rng_.below(20)))
                      .shards();
    for (auto& shard : shards) {
      for (auto& sample : shard.samples) {
        sample.key_hash = mix64(sample.key_hash ^ rng_.next_u64());
        if (one_in(20)) sample.flags |= index::kBadImage;
        if (one_in(20)) shard.captions[sample.first_caption].language = index::language_code("de");
      }
    }
    return index::Index::from_shards({}, std::move(shards));
  }

  void choose_options() {
    constexpr std::array<const char*, 3> kOrders{"window", "full", "sequential"};
    on_disk_ = one_in(2);
    options_.batch = static_cast<int64_t>(1 + rng_.below(40));
    options_.window_blocks = static_cast<int64_t>(1 + rng_.below(9));
    options_.order = kOrders[rng_.below(3)];
    options_.flip = true;
    options_.crop = "random";
    options_.mode = documents_ || packs_pictures_ ? "pack" : "bucket";
    if (documents_) options_.languages.clear();
    if (one_in(3)) options_.held_out = static_cast<int64_t>(1 + rng_.below(20));
    if (one_in(3)) options_.limit = static_cast<int64_t>(60 + rng_.below(200));
    if (!mixed_ && !documents_ && one_in(2)) options_.shape_clusters = 3;
    if (!documents_ && one_in(2)) choose_stages();
    for (size_t s = 0; mixed_ && s < index_->members().size(); ++s)
      options_.sources.push_back(choose_source(s));
  }

  void choose_stages() {
    spec::ShapeStage stage;
    for (uint64_t s = 0; s < 1 + rng_.below(3); ++s) {
      stage.from += static_cast<int64_t>(1 + rng_.below(12));
      stage.resolution = 8 * static_cast<int64_t>(2 + rng_.below(7));
      stage.bucket_max = 128;
      options_.stages.push_back(stage);
    }
  }

  spec::DataSource choose_source(size_t s) {
    spec::DataSource source;
    source.name = "source" + std::to_string(s);
    source.index = source.name;
    source.weight = {{0, 0.05 + rng_.uniform_double()}};
    if (one_in(2))
      source.weight.push_back({static_cast<int64_t>(1 + rng_.below(20)), 0.05 + rng_.uniform_double()});
    source.ramp = one_in(2);
    if (one_in(3)) source.epochs = static_cast<int64_t>(1 + rng_.below(3));
    return source;
  }

  uint64_t source_seed(size_t s) const {
    return mixed_ ? mix64(seed_ ^ hash64(options_.sources[s].name)) : seed_;
  }

  /// Compares a step with the model, and returns its digest.
  Digest check_step(const Plan& plan, int64_t step) {
    const Step selected = plan.select(step, journal_);
    std::vector<int64_t> expected;
    if (!mixed_) {
      expected = models_[0].step(step);
    } else {
      expected = next_of_sources(selected);
    }
    std::vector<int64_t> found;
    for (const Item& item : selected.items) found.push_back(item.sample);
    EXPECT_EQ(found, expected) << "step " << step;
    if (!documents_) check_shapes(plan, selected);
    for (const Item& item : selected.items) {
      EXPECT_EQ(item.weight, journal_.weight(item.sample, step));
    }
    return selected.digest();
  }

  /// Each picture has the shape that the settings of the step's stage alone would give it.
  void check_shapes(const Plan& plan, const Step& step) const {
    const auto buckets = make_buckets(test::options_at(options_, step.step));
    for (const Item& item : step.items) {
      const auto image = index_->image_part(item.sample);
      const auto at = assign_bucket(buckets, image->width, image->height);
      EXPECT_EQ(plan.buckets()[static_cast<size_t>(item.bucket)], buckets[static_cast<size_t>(at)])
          << "step " << step.step;
    }
  }

  /// As many of each source as the step has, from its epochs in a row.
  std::vector<int64_t> next_of_sources(const Step& selected) {
    left_.resize(models_.size());
    epochs_.resize(models_.size());
    std::vector<int64_t> expected;
    for (size_t s = 0; s < models_.size(); ++s) {
      const auto& member = index_->members()[s];
      for (const Item& item : selected.items) {
        if (item.sample < member.first_sample || item.sample >= member.end_sample) continue;
        if (left_[s].empty()) {
          const int64_t most = options_.sources[s].epochs;
          EXPECT_TRUE(most == 0 || epochs_[s] < most) << "source " << s << " goes on";
          left_[s] = models_[s].epoch(epochs_[s]++);
          std::reverse(left_[s].begin(), left_[s].end());
        }
        expected.push_back(left_[s].back());
        left_[s].pop_back();
      }
    }
    return expected;
  }

  /// The digest of a step put together from what its ranks hold.
  Digest of_ranks(const Plan& plan, int64_t step, int ranks) const {
    Step selected = plan.select(step, journal_);
    PackOptions options;
    options.num_ranks = ranks;
    options.max_items = 8;
    options.work = test::transformer_work();
    if (documents_) {
      options.max_tokens = 2048;
      options.row_work = test::row_work();
    } else if (packs_pictures_) {
      options.max_tokens = 1024;
      options.positions = [](Bucket bucket, int64_t) { return int64_t{bucket.width} * bucket.height / 16; };
    }
    const PackedStep packed = pack(selected, plan.buckets(), options);
    std::vector<std::optional<Item>> items(selected.items.size());
    for (const auto& slots : packed.slots) {
      EXPECT_EQ(slots.size(), packed.slots[0].size());
      for (const auto& slot : slots) {
        for (const Item& item : slot.items) {
          EXPECT_FALSE(items.at(item.position).has_value()) << "twice at position " << item.position;
          items[item.position] = item;
        }
      }
    }
    for (size_t i = 0; i < items.size(); ++i) selected.items[i] = items[i].value_or(Item{});
    return selected.digest();
  }

  Rng rng_;
  uint64_t seed_;
  bool documents_ = false;
  bool packs_pictures_ = false;
  bool mixed_ = false;
  bool on_disk_ = false;
  std::optional<index::Index> index_;
  spec::DataOptions options_;
  TokenCount tokens_;
  Journal journal_;
  test::TempDir folder_;
  std::vector<test::OrderModel> models_;
  std::vector<std::vector<int64_t>> left_;  // of the epoch of each source, backwards
  std::vector<int64_t> epochs_;
};

class ExactTest : public ::testing::TestWithParam<uint64_t> {};

TEST_P(ExactTest, RunsGoOnAtAnyNumberOfRanks) {
  ExactRun run(GetParam());
  run.check();
}

INSTANTIATE_TEST_SUITE_P(Seeds, ExactTest, ::testing::Range(uint64_t{0}, uint64_t{40}));

}  // namespace
}  // namespace chiliad::stepplan
