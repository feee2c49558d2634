// How a step of documents or pictures is cut into rows:
// 1. Whoever cannot be divided, an item or an offline pack of items, is a piece.
// 2. Ranks wait once a step: pieces are evened out over ranks (even_out.h); each rank's pieces fill as few
// rows as
//    first fit needs, and are evened out over these.
//    Ranks wait in each slot: pieces are evened out over the rows of all ranks; rows of like work share a
//    slot (slot_rows.h).
// 3. Ranks get equal slots, those of most work first.
#include "chiliad/stepplan/pack_rows.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/base/planted.h"
#include "chiliad/stepplan/even_out.h"
#include "chiliad/stepplan/slot_rows.h"

namespace chiliad::stepplan {
namespace {

struct Piece {
  std::span<const Item> items;
  Load load;
};

double sum_of(const Works& works) {
  return std::accumulate(works.begin(), works.end(), 0.0);
}

/// Work of an item alone in a row, and what of it is the row's overhead: what is left of two such rows above
/// one with both.
struct AloneWork {
  Works whole{};
  Works overhead{};
};

AloneWork from_two(const Works& one, const Works& two) {
  AloneWork alone;
  alone.whole = one;
  for (size_t c = 0; c < one.size(); ++c) alone.overhead[c] = 2.0 * one[c] - two[c];
  return alone;
}

AloneWork alone_work(const Item& item, const std::vector<Bucket>& buckets, const PackOptions& options) {
  if (options.item_works) {
    AloneWork alone{options.item_works(item), options.row_overhead};
    for (size_t c = 0; c < alone.whole.size(); ++c) alone.whole[c] += alone.overhead[c];
    return alone;
  }
  if (options.packs_pictures()) {
    const Bucket bucket = buckets.at(static_cast<size_t>(item.bucket));
    if (options.component_work)
      return from_two(options.component_work(bucket, 1, item.num_tokens),
                      options.component_work(bucket, 2, item.num_tokens));
    return from_two({options.work(bucket, 1, item.num_tokens)}, {options.work(bucket, 2, item.num_tokens)});
  }
  const double tokens = item.num_tokens;
  return from_two({options.row_work(item.num_tokens, tokens * tokens)},
                  {options.row_work(2 * int64_t{item.num_tokens}, 2.0 * tokens * tokens)});
}

Works shares_of(const AloneWork& alone) {
  Works shares = alone.whole;
  for (size_t c = 0; c < shares.size(); ++c) shares[c] -= alone.overhead[c];
  return shares;
}

[[noreturn]] void refuse(const Piece& piece, const std::vector<Bucket>& buckets, const PackOptions& options) {
  const Item& item = piece.items.front();
  std::string what = fmt::format("an offline pack of {} items", piece.items.size());
  if (item.pack < 0) {
    const Bucket bucket = buckets.at(static_cast<size_t>(item.bucket));
    what = options.packs_pictures() ? fmt::format("a picture of {} x {} pixels", bucket.width, bucket.height)
                                    : std::string("a document");
  }
  throw InvalidInput("data.micro_batch_tokens",
                     fmt::format("expected at least the {} positions of {}, got {}. Did you mean {}?",
                                 piece.load.tokens, what, options.max_tokens, piece.load.tokens));
}

std::vector<Piece> pieces_of(const Step& step, const std::vector<Bucket>& buckets,
                             const PackOptions& options) {
  std::vector<Piece> pieces;
  pieces.reserve(step.items.size());
  const std::span<const Item> items(step.items);
  for (size_t first = 0; first < items.size();) {
    size_t last = first + 1;
    while (last < items.size() && items[first].pack >= 0 && items[last].pack == items[first].pack) ++last;
    Piece& piece = pieces.emplace_back();
    piece.items = items.subspan(first, last - first);
    for (const Item& item : piece.items) {
      piece.load.tokens += row_positions(item, buckets, options);
      const Works shares = row_shares(item, buckets, options);
      for (size_t c = 0; c < shares.size(); ++c) piece.load.works[c] += shares[c];
    }
    piece.load.total = sum_of(piece.load.works);
    CHILIAD_CHECK(piece.load.tokens >= 1, "an item of no positions");
    if (piece.load.tokens > options.max_tokens) refuse(piece, buckets, options);
    first = last;
  }
  return pieces;
}

/// Documents are in the plan's order; pictures by shape, then in that order.
bool comes_first(const Item& a, const Item& b) {
  return a.bucket != b.bucket ? a.bucket < b.bucket : a.position < b.position;
}

class RowMaker {
 public:
  RowMaker(const Step& step, const std::vector<Bucket>& buckets, const PackOptions& options)
      : buckets_(buckets), options_(options), pieces_(pieces_of(step, buckets, options)) {
    loads_.reserve(pieces_.size());
    for (const Piece& piece : pieces_) loads_.push_back(piece.load);
    if (!pieces_.empty()) overhead_ = overhead();
  }

  [[nodiscard]] PackedStep make() const {
    return options_.sync == Sync::kSlot && !options_.in_order ? rows_by_slot() : rows_by_rank();
  }

 private:
  using Rows = std::vector<std::vector<uint32_t>>;  // numbers of pieces

  [[nodiscard]] EvenOutOptions bins(size_t count, int64_t max_tokens) const {
    return {count, options_.num_components(), max_tokens, options_.in_order};
  }
  [[nodiscard]] Works overhead() const;
  [[nodiscard]] PackedStep rows_by_rank() const;
  [[nodiscard]] PackedStep rows_by_slot() const;
  [[nodiscard]] Rows rows_of_rank(const std::vector<uint32_t>& mine) const;
  [[nodiscard]] Rows first_fit(std::vector<uint32_t> mine) const;
  [[nodiscard]] MicroBatch finish(std::vector<uint32_t> row) const;

  const std::vector<Bucket>& buckets_;
  const PackOptions& options_;
  std::vector<Piece> pieces_;
  std::vector<Load> loads_;
  Works overhead_{};  // of a row
};

Works RowMaker::overhead() const {
  return alone_work(pieces_.front().items.front(), buckets_, options_).overhead;
}

MicroBatch RowMaker::finish(std::vector<uint32_t> row) const {
  MicroBatch batch;
  batch.works = overhead_;
  int64_t tokens = 0;
  double squares = 0.0;
  size_t count = 0;
  for (const uint32_t number : row) count += pieces_[number].items.size();
  batch.items.reserve(count);
  std::sort(row.begin(), row.end(), [&](uint32_t a, uint32_t b) {
    return comes_first(pieces_[a].items.front(), pieces_[b].items.front());
  });
  for (const uint32_t number : row) {
    const Piece& piece = pieces_[number];
    batch.items.insert(batch.items.end(), piece.items.begin(), piece.items.end());
    for (size_t c = 0; c < batch.works.size(); ++c) batch.works[c] += piece.load.works[c];
    for (const Item& item : piece.items) {
      tokens += item.num_tokens;
      squares += static_cast<double>(item.num_tokens) * item.num_tokens;
    }
  }
  if (count > row.size()) std::sort(batch.items.begin(), batch.items.end(), comes_first);
  if (planted_bug("dropped_leftovers") && batch.items.size() > 2) batch.items.pop_back();
  if (options_.row_work && !options_.item_works && !options_.packs_pictures())
    batch.works = {options_.row_work(tokens, squares)};
  batch.work = sum_of(batch.works);
  return batch;
}

RowMaker::Rows RowMaker::first_fit(std::vector<uint32_t> mine) const {
  if (!options_.in_order) {
    std::stable_sort(mine.begin(), mine.end(),
                     [&](uint32_t a, uint32_t b) { return loads_[a].tokens > loads_[b].tokens; });
  }
  Rows rows;
  std::vector<int64_t> room;
  for (const uint32_t piece : mine) {
    const auto at =
        std::find_if(room.begin(), room.end(), [&](int64_t r) { return r >= loads_[piece].tokens; });
    const auto row = static_cast<size_t>(at - room.begin());
    if (at == room.end()) {
      room.push_back(options_.max_tokens);
      rows.emplace_back();
    }
    room[row] -= loads_[piece].tokens;
    rows[row].push_back(piece);
  }
  return rows;
}

/// As many rows as first fit needs, of about equal work where that has room.
RowMaker::Rows RowMaker::rows_of_rank(const std::vector<uint32_t>& mine) const {
  int64_t tokens = 0;
  for (const uint32_t piece : mine) tokens += loads_[piece].tokens;
  if (tokens <= options_.max_tokens && !mine.empty()) return {mine};
  Rows rows = first_fit(mine);
  if (rows.size() < 2 || options_.in_order) return rows;
  std::vector<Load> loads;
  loads.reserve(mine.size());
  for (const uint32_t piece : mine) loads.push_back(loads_[piece]);
  auto even = even_out(loads, bins(rows.size(), options_.max_tokens));
  if (!even.has_value()) return rows;
  for (auto& row : *even) {
    for (uint32_t& piece : row) piece = mine[piece];
  }
  return *std::move(even);
}

void add_slot(PackedStep& packed, size_t rank, MicroBatch&& slot) {
  packed.rank_work[rank] += slot.work;
  packed.slots[rank].push_back(std::move(slot));
}

PackedStep RowMaker::rows_by_rank() const {
  const auto num_ranks = static_cast<size_t>(options_.num_ranks);
  PackedStep packed;
  packed.slots.resize(num_ranks);
  packed.rank_work.resize(num_ranks);
  const auto ranks = even_out(loads_, bins(num_ranks, 0));
  size_t num_slots = 0;
  for (size_t rank = 0; rank < num_ranks; ++rank) {
    for (auto& row : rows_of_rank((*ranks)[rank])) add_slot(packed, rank, finish(std::move(row)));
    auto& slots = packed.slots[rank];
    std::stable_sort(slots.begin(), slots.end(),
                     [](const MicroBatch& a, const MicroBatch& b) { return a.work > b.work; });
    num_slots = std::max(num_slots, slots.size());
  }
  for (auto& slots : packed.slots) slots.resize(num_slots);
  return packed;
}

PackedStep RowMaker::rows_by_slot() const {
  const auto num_ranks = static_cast<size_t>(options_.num_ranks);
  PackedStep packed;
  packed.slots.resize(num_ranks);
  packed.rank_work.resize(num_ranks);
  if (pieces_.empty()) return packed;
  int64_t tokens = 0;
  for (const Load& load : loads_) tokens += load.tokens;
  const int64_t room = options_.max_tokens * options_.num_ranks;
  auto num_slots = static_cast<size_t>((tokens + room - 1) / room);
  auto rows = even_out(loads_, bins(num_slots * num_ranks, options_.max_tokens));
  while (!rows.has_value())  // as many rows as pieces have room at the latest
    rows = even_out(loads_, bins(++num_slots * num_ranks, options_.max_tokens));
  std::vector<Load> sums(rows->size());
  for (size_t r = 0; r < rows->size(); ++r) {
    for (const uint32_t piece : (*rows)[r]) {
      sums[r].total += loads_[piece].total;
      for (size_t c = 0; c < sums[r].works.size(); ++c) sums[r].works[c] += loads_[piece].works[c];
    }
  }
  const auto order = share_slots(sums, num_slots, options_.num_components());
  std::vector<std::pair<double, uint32_t>> ranks;
  for (size_t slot = 0; slot < num_slots; ++slot) {
    ranks.clear();  // who has least so far gets most
    for (uint32_t rank = 0; rank < num_ranks; ++rank) ranks.emplace_back(packed.rank_work[rank], rank);
    std::sort(ranks.begin(), ranks.end());
    for (size_t i = 0; i < num_ranks; ++i) {
      auto& row = (*rows)[order[slot * num_ranks + i]];
      add_slot(packed, ranks[i].second, row.empty() ? MicroBatch{} : finish(std::move(row)));
    }
  }
  return packed;
}

}  // namespace

int64_t row_positions(const Item& item, const std::vector<Bucket>& buckets, const PackOptions& options) {
  if (!options.packs_pictures()) return item.num_tokens;
  return options.positions(buckets.at(static_cast<size_t>(item.bucket)), item.num_tokens);
}

Works row_shares(const Item& item, const std::vector<Bucket>& buckets, const PackOptions& options) {
  if (options.item_works) return options.item_works(item);
  return shares_of(alone_work(item, buckets, options));
}

PackedStep pack_rows(const Step& step, const std::vector<Bucket>& buckets, const PackOptions& options) {
  const bool has_work =
      options.item_works != nullptr ||
      (options.packs_pictures() ? options.work != nullptr || options.component_work != nullptr
                                : options.row_work != nullptr);
  CHILIAD_CHECK(has_work, "a work model of rows is needed");
  return RowMaker(step, buckets, options).make();
}

}  // namespace chiliad::stepplan
