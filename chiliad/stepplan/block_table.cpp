#include "chiliad/stepplan/block_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <mutex>
#include <thread>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/base/rng.h"
#include "chiliad/base/thread_pool.h"
#include "chiliad/index/plan_columns.h"

namespace chiliad::stepplan {
namespace {

constexpr uint64_t kLimitKey = 0x6C696D6974ULL;
constexpr uint64_t kHeldOutKey = 0x68656C64ULL;

constexpr int64_t kStoredFrom = 1 << 20;  // samples; smaller tables take milliseconds
constexpr int64_t kBlocksAtOnce = 512;    // of a thread's task
constexpr int64_t kGathered = 1 << 20;    // keyed hashes in memory while a choice is made
constexpr int kDigitBits = 16;

using Keyed = std::pair<uint64_t, int64_t>;

uint64_t keyed_hash(uint64_t key_hash, uint64_t key) {
  return mix64(key_hash ^ key);
}

/// One pass over all blocks: `visit(block, rows, state)` in threads, each with a State of its own; then
/// `merge(state)` of each.
template <typename State, typename Visit, typename Merge>
void for_blocks(const index::SampleColumns& columns, const std::function<void(int64_t)>& progress,
                const Visit& visit, const Merge& merge) {
  const int64_t count = columns.num_blocks();
  if (columns.num_samples() < kStoredFrom) {
    State state;
    index::BlockRows rows;
    for (int64_t block = 0; block < count; ++block) {
      columns.read(block, rows);
      visit(block, rows, state);
    }
    merge(state);
    return;
  }
  std::mutex mutex;  // guards what merge and progress touch
  int64_t done = 0;
  ThreadPool pool(static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, 16U)), 64, "plan");
  for (int64_t first = 0; first < count; first += kBlocksAtOnce) {
    pool.submit([&, first] {
      State state;
      index::BlockRows rows;
      const int64_t end = std::min(count, first + kBlocksAtOnce);
      std::vector<int64_t> next;
      for (int64_t block = first; block < end; ++block) next.push_back(block);
      columns.will_need(next);
      for (int64_t block = first; block < end; ++block) {
        columns.read(block, rows);
        visit(block, rows, state);
      }
      std::lock_guard lock(mutex);
      merge(state);
      done += end - first;
      if (progress) progress(done);
    });
  }
  pool.close();
}

class TableMaker {
 public:
  TableMaker(const index::SampleColumns& columns, const Usable& usable, const BlockTableOptions& options)
      : columns_(columns), usable_(usable), options_(options) {
    table_.part = options.part;
  }

  BlockTable make() {
    count(true);
    const int64_t usable = table_.num_items;
    Coverage coverage = table_.coverage;
    if (options_.held_out > 0) {
      if (options_.held_out >= usable) {
        throw InvalidInput("data.held_out",
                           fmt::format("expected fewer than the {} usable items, got {}. Lower it", usable,
                                       options_.held_out));
      }
      table_.held_out = choose(kHeldOutKey, options_.held_out);
      coverage.held_out = options_.held_out;
    }
    const int64_t left = usable - options_.held_out;
    if (options_.limit > 0 && left > options_.limit) {
      coverage.over_limit = left - options_.limit;
      table_.limit = choose(kLimitKey, options_.limit);
      table_.is_limited = true;
    }
    if (options_.held_out > 0 || table_.is_limited || options_.part == PlanPart::kHeldOut) count(false);
    table_.coverage = coverage;
    table_.coverage.in_order = table_.num_items;
    return std::move(table_);
  }

 private:
  struct Counts {
    std::vector<std::pair<int64_t, uint32_t>> blocks;
    std::vector<int64_t> buckets;
    Coverage coverage;
  };

  void count(bool of_all) {
    table_.items.assign(static_cast<size_t>(columns_.num_blocks()), 0);
    table_.bucket_items.assign(options_.num_buckets, 0);
    table_.num_items = 0;
    Coverage coverage;
    for_blocks<Counts>(
        columns_, progress(),
        [&](int64_t block, const index::BlockRows& rows, Counts& counts) {
          counts.buckets.resize(options_.num_buckets);
          counts.coverage.in_index += static_cast<int64_t>(rows.samples.size());
          uint32_t items = 0;
          for (size_t i = 0; i < rows.samples.size(); ++i) {
            const auto bucket = usable_.bucket_of(rows, i, counts.coverage);
            if (!bucket || (!of_all && !table_.holds(rows.samples[i].key_hash, number_of(rows, i)))) continue;
            ++counts.buckets[static_cast<size_t>(*bucket)];
            for (size_t stage = 1; stage < usable_.num_stages(); ++stage)
              ++counts.buckets[static_cast<size_t>(usable_.bucket_in(stage, rows.samples[i]))];
            ++items;
          }
          counts.blocks.emplace_back(block, items);
        },
        [&](const Counts& counts) {
          for (const auto& [block, items] : counts.blocks) {
            table_.items[static_cast<size_t>(block)] = items;
            table_.num_items += items;
          }
          for (size_t b = 0; b < counts.buckets.size(); ++b) table_.bucket_items[b] += counts.buckets[b];
          coverage += counts.coverage;
        });
    table_.coverage = coverage;
  }

  /// The threshold of the `count` smallest keyed hashes of what is not held out: their leading digits are
  /// counted until those that may be at the border fit into memory.
  KeyedChoice choose(uint64_t key, int64_t count) {
    uint64_t prefix = 0;
    int bits = 0;
    int64_t below = 0;  // hashes under the prefix
    int64_t inside = columns_.num_samples();
    while (inside > kGathered && bits < 64) {
      std::vector<int64_t> digits(size_t{1} << kDigitBits);
      for_blocks<std::vector<int64_t>>(
          columns_, progress(),
          [&](int64_t, const index::BlockRows& rows, std::vector<int64_t>& found) {
            found.resize(digits.size());
            each_candidate(rows, key, prefix, bits,
                           [&](const Keyed& keyed) { ++found[keyed.first << bits >> (64 - kDigitBits)]; });
          },
          [&](const std::vector<int64_t>& found) {
            for (size_t d = 0; d < found.size(); ++d) digits[d] += found[d];
          });
      size_t digit = 0;
      while (below + digits[digit] < count) below += digits[digit++];
      inside = digits[digit];
      prefix = prefix << kDigitBits | digit;
      bits += kDigitBits;
    }
    std::vector<Keyed> candidates;
    for_blocks<std::vector<Keyed>>(
        columns_, progress(),
        [&](int64_t, const index::BlockRows& rows, std::vector<Keyed>& found) {
          each_candidate(rows, key, prefix, bits, [&](const Keyed& keyed) { found.push_back(keyed); });
        },
        [&](const std::vector<Keyed>& found) {
          candidates.insert(candidates.end(), found.begin(), found.end());
        });
    const auto last = candidates.begin() + (count - below - 1);
    std::nth_element(candidates.begin(), last, candidates.end());
    return {key, last->first, last->second};
  }

  template <typename Use>
  void each_candidate(const index::BlockRows& rows, uint64_t key, uint64_t prefix, int bits,
                      const Use& use) const {
    Coverage ignored;
    for (size_t i = 0; i < rows.samples.size(); ++i) {
      const uint64_t hash = keyed_hash(rows.samples[i].key_hash, key);
      if (bits > 0 && hash >> (64 - bits) != prefix) continue;
      const int64_t number = number_of(rows, i);
      if (key != kHeldOutKey && table_.held_out.holds(rows.samples[i].key_hash, number)) continue;
      if (usable_.bucket_of(rows, i, ignored)) use(Keyed{hash, number});
    }
  }

  static int64_t number_of(const index::BlockRows& rows, size_t i) {
    return rows.first_sample + static_cast<int64_t>(i);
  }

  std::function<void(int64_t)> progress() const {
    if (!options_.progress) return nullptr;
    return [this](int64_t done) { options_.progress(done, columns_.num_blocks()); };
  }

  const index::SampleColumns& columns_;
  const Usable& usable_;
  const BlockTableOptions& options_;
  BlockTable table_;
};

/// The numbers of a table beside the blocks', in one order for writer and reader.
template <typename Table, typename Visit>
void visit_totals(Table& table, const Visit& visit) {
  auto& coverage = table.coverage;
  for (auto* value :
       {&coverage.in_index, &coverage.in_order, &coverage.bad_image, &coverage.no_caption, &coverage.aspect,
        &coverage.too_small, &coverage.over_limit, &coverage.held_out, &coverage.too_short, &coverage.cut,
        &coverage.cut_tokens, &table.num_items, &table.held_out.sample, &table.limit.sample})
    visit(*value);
  for (auto* value : {&table.held_out.key, &table.held_out.hash, &table.limit.key, &table.limit.hash})
    visit(reinterpret_cast<int64_t&>(*value));
}

void store(const std::filesystem::path& path, BlockTable& table) {
  index::BlockTotals totals;
  visit_totals(table, [&](const int64_t& value) { totals.totals.push_back(value); });
  totals.totals.push_back(table.is_limited ? 1 : 0);
  totals.totals.insert(totals.totals.end(), table.bucket_items.begin(), table.bucket_items.end());
  totals.blocks = table.items;
  index::write_block_totals(path, totals);
}

/// Nothing where it does not fit: it is made again.
bool load(const std::filesystem::path& path, const index::SampleColumns& columns, BlockTable& table,
          size_t num_buckets) {
  try {
    index::BlockTotals totals = index::read_block_totals(path);
    size_t at = 0;
    constexpr size_t kFixed = 19;
    if (totals.totals.size() != kFixed + num_buckets) return false;
    visit_totals(table, [&](int64_t& value) { value = totals.totals[at++]; });
    table.is_limited = totals.totals[at++] != 0;
    table.bucket_items.assign(totals.totals.begin() + static_cast<ptrdiff_t>(at), totals.totals.end());
    table.items = std::move(totals.blocks);
    return static_cast<int64_t>(table.items.size()) == columns.num_blocks();
  } catch (const CorruptData&) {
    return false;
  }
}

}  // namespace

bool KeyedChoice::holds(uint64_t key_hash, int64_t number) const {
  return Keyed{keyed_hash(key_hash, key), number} <= Keyed{hash, sample};
}

bool BlockTable::holds(uint64_t key_hash, int64_t sample) const {
  const bool is_held_out = held_out.sample >= 0 && held_out.holds(key_hash, sample);
  if (part == PlanPart::kHeldOut) return is_held_out;
  return !is_held_out && (!is_limited || limit.holds(key_hash, sample));
}

BlockTable make_block_table(const index::SampleColumns& columns, const Usable& usable,
                            const BlockTableOptions& options) {
  TableMaker maker(columns, usable, options);
  if (options.folder.empty() || columns.num_samples() < kStoredFrom) return maker.make();
  Hasher hasher;
  hasher.add("block table 2").add(usable.digest()).add(options.held_out).add(options.limit);
  hasher.add(options.first_sample).add(options.part == PlanPart::kTraining ? 0 : 1);
  const auto path = options.folder / (hasher.digest().hex() + ".chtot");
  BlockTable table;
  table.part = options.part;
  if (std::filesystem::exists(path) && load(path, columns, table, options.num_buckets)) return table;
  table = maker.make();
  store(path, table);
  return table;
}

}  // namespace chiliad::stepplan
