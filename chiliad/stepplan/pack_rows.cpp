// How a step of pieces, documents or pictures, is cut:
// 1. Pieces go to ranks, those of most work first, each to the rank that has least.
// 2. While it helps, the rank with the most work gives a piece to another one or swaps one with it.
// 3. Each rank's pieces fill rows, the longest first, each into the first row with room. Then the rows of
// a
//    rank are evened out: as many as there are, each piece to the row of least work that has room.
// 4. Rows are handed out by work, so that ranks do like amounts in the same slot; ranks get equal slots.
#include "chiliad/stepplan/pack_rows.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "chiliad/base/error.h"

namespace chiliad::stepplan {
namespace {

constexpr size_t kMaxPartners = 8;
constexpr int kRoundsPerRank = 24;
constexpr double kGoodEnough = 1.001;

struct Piece {
  const Item* item = nullptr;
  int64_t tokens = 0;  // positions of a row
  double work = 0.0;   // without the overhead of a row

  // Most work first; then the plan's order, so that the result is one.
  bool operator<(const Piece& other) const {
    return work != other.work ? work > other.work : item->position < other.item->position;
  }
};

using Pieces = std::vector<Piece>;  // sorted

double sum_of_work(const Pieces& pieces) {
  double sum = 0.0;
  for (const Piece& piece : pieces) sum += piece.work;
  return sum;
}

struct Swap {
  size_t taker = 0;
  size_t given = 0;
  std::optional<size_t> taken;
  double worst = 0.0;
};

class Ranks {
 public:
  Ranks(Pieces all, size_t count) : pieces_(count), load_(count) {
    std::sort(all.begin(), all.end());
    for (const Piece& piece : all) {  // stays sorted
      const size_t least = static_cast<size_t>(std::min_element(load_.begin(), load_.end()) - load_.begin());
      pieces_[least].push_back(piece);
      load_[least] += piece.work;
    }
  }

  void even_out() {
    const double mean = std::accumulate(load_.begin(), load_.end(), 0.0) / static_cast<double>(load_.size());
    const int max_rounds = kRoundsPerRank * static_cast<int>(load_.size());
    for (int round = 0; round < max_rounds; ++round) {
      const auto giver = static_cast<size_t>(std::max_element(load_.begin(), load_.end()) - load_.begin());
      if (load_[giver] <= kGoodEnough * mean || !improve(giver)) return;
    }
  }

  [[nodiscard]] const std::vector<Pieces>& pieces() const { return pieces_; }

 private:
  bool improve(size_t giver) {
    std::vector<size_t> by_load(load_.size());
    std::iota(by_load.begin(), by_load.end(), 0);
    std::stable_sort(by_load.begin(), by_load.end(), [&](size_t a, size_t b) { return load_[a] < load_[b]; });
    Swap best;
    best.worst = load_[giver] * (1.0 - 1e-6);
    const size_t before = pieces_[giver].size();
    bool found = false;
    for (size_t i = 0; i < std::min(kMaxPartners, by_load.size() - 1); ++i)
      found |= find_swap(giver, by_load[i], best);
    if (!found || before == 0) return false;
    apply(giver, best);
    return true;
  }

  // Of each piece the best partner is the one that halves the difference; it or its neighbour is taken.
  bool find_swap(size_t giver, size_t taker, Swap& best) const {
    const double half = (load_[giver] - load_[taker]) / 2.0;
    bool found = false;
    const auto consider = [&](size_t given, std::optional<size_t> taken) {
      const double moved = pieces_[giver][given].work - (taken ? pieces_[taker][*taken].work : 0.0);
      const double worst = std::max(load_[giver] - moved, load_[taker] + moved);
      if (moved <= 0.0 || worst >= best.worst) return;
      best = {taker, given, taken, worst};
      found = true;
    };
    const Pieces& theirs = pieces_[taker];
    for (size_t given = 0; given < pieces_[giver].size(); ++given) {
      consider(given, std::nullopt);
      const double wanted = pieces_[giver][given].work - half;
      const auto at =
          std::partition_point(theirs.begin(), theirs.end(), [&](const Piece& d) { return d.work > wanted; });
      const auto near = static_cast<size_t>(at - theirs.begin());
      if (near < theirs.size()) consider(given, near);
      if (near > 0) consider(given, near - 1);
    }
    return found;
  }

  void apply(size_t giver, const Swap& swap) {
    const Piece given = take(giver, swap.given);
    if (swap.taken) put(giver, take(swap.taker, *swap.taken));
    put(swap.taker, given);
  }
  Piece take(size_t rank, size_t at) {
    const Piece piece = pieces_[rank][at];
    pieces_[rank].erase(pieces_[rank].begin() + static_cast<ptrdiff_t>(at));
    load_[rank] = sum_of_work(pieces_[rank]);
    return piece;
  }
  void put(size_t rank, const Piece& piece) {
    auto& list = pieces_[rank];
    list.insert(std::upper_bound(list.begin(), list.end(), piece), piece);
    load_[rank] = sum_of_work(list);
  }

  std::vector<Pieces> pieces_;  // of each rank
  std::vector<double> load_;
};

struct Row {
  Pieces pieces;
  int64_t tokens = 0;
  double work = 0.0;  // of its pieces

  void add(const Piece& piece) {
    pieces.push_back(piece);
    tokens += piece.tokens;
    work += piece.work;
  }
};

std::vector<Row> first_fit(const Pieces& pieces, int64_t max_tokens) {
  std::vector<Row> rows;
  for (const Piece& piece : pieces) {  // more work is more tokens
    const auto room = [&](const Row& row) { return row.tokens + piece.tokens <= max_tokens; };
    auto row = std::find_if(rows.begin(), rows.end(), room);
    if (row == rows.end()) row = rows.emplace(rows.end());
    row->add(piece);
  }
  return rows;
}

/// The same number of rows, of about equal work; nothing where they are too full for that.
std::optional<std::vector<Row>> even_rows(const Pieces& pieces, size_t count, int64_t max_tokens) {
  std::vector<Row> rows(count);
  for (const Piece& piece : pieces) {
    Row* least = nullptr;
    for (Row& row : rows) {
      if (row.tokens + piece.tokens > max_tokens) continue;
      if (least == nullptr || row.work < least->work) least = &row;
    }
    if (least == nullptr) return std::nullopt;
    least->add(piece);
  }
  return rows;
}

/// Documents are in the plan's order; pictures by shape, then in that order.
bool comes_first(const Item& a, const Item& b) {
  return a.bucket != b.bucket ? a.bucket < b.bucket : a.position < b.position;
}

/// Work of an item alone in a row, and what of it is the row's overhead: what is left of two such rows above
/// one with both.
struct AloneWork {
  double whole = 0.0;
  double overhead = 0.0;
};
AloneWork alone_work(const Item& item, const std::vector<Bucket>& buckets, const PackOptions& options) {
  const double tokens = item.num_tokens;
  if (options.packs_pictures()) {
    const Bucket bucket = buckets.at(static_cast<size_t>(item.bucket));
    const double one = options.work(bucket, 1, item.num_tokens);
    return {one, 2.0 * one - options.work(bucket, 2, item.num_tokens)};
  }
  const double one = options.row_work(item.num_tokens, tokens * tokens);
  return {one, 2.0 * one - options.row_work(2 * int64_t{item.num_tokens}, 2.0 * tokens * tokens)};
}

double work_of_row(const Row& row, const std::vector<Bucket>& buckets, const PackOptions& options) {
  if (options.packs_pictures())
    return row.work + alone_work(*row.pieces.front().item, buckets, options).overhead;
  double squares = 0.0;
  for (const Piece& piece : row.pieces)
    squares += static_cast<double>(piece.tokens) * static_cast<double>(piece.tokens);
  return options.row_work(row.tokens, squares);
}

MicroBatch finish_row(const Row& row, const std::vector<Bucket>& buckets, const PackOptions& options) {
  MicroBatch batch;
  for (const Piece& piece : row.pieces) batch.items.push_back(*piece.item);
  std::sort(batch.items.begin(), batch.items.end(), comes_first);
  batch.work = work_of_row(row, buckets, options);
  return batch;
}

/// Throws InvalidInput for a picture without room in any row.
Piece piece_of(const Item& item, const std::vector<Bucket>& buckets, const PackOptions& options) {
  const int64_t tokens = row_positions(item, buckets, options);
  if (options.packs_pictures() && tokens > options.max_tokens) {
    const Bucket bucket = buckets.at(static_cast<size_t>(item.bucket));
    throw InvalidInput(
        "data.micro_batch_tokens",
        fmt::format("expected at least the {} positions of a picture of {} x {} pixels, got {}. "
                    "Did you mean {}?",
                    tokens, bucket.width, bucket.height, options.max_tokens, tokens));
  }
  CHILIAD_CHECK(tokens >= 1 && tokens <= options.max_tokens, "{} tokens in rows of {}", tokens,
                options.max_tokens);
  return {&item, tokens, row_share(item, buckets, options)};
}

std::vector<MicroBatch> rows_of(const Pieces& pieces, const std::vector<Bucket>& buckets,
                                const PackOptions& options) {
  std::vector<Row> rows = first_fit(pieces, options.max_tokens);
  if (auto even = even_rows(pieces, rows.size(), options.max_tokens)) rows = *std::move(even);
  std::vector<MicroBatch> slots;
  slots.reserve(rows.size());
  for (const Row& row : rows) slots.push_back(finish_row(row, buckets, options));
  std::stable_sort(slots.begin(), slots.end(),
                   [](const MicroBatch& a, const MicroBatch& b) { return a.work > b.work; });
  return slots;
}

}  // namespace

int64_t row_positions(const Item& item, const std::vector<Bucket>& buckets, const PackOptions& options) {
  if (!options.packs_pictures()) return item.num_tokens;
  return options.positions(buckets.at(static_cast<size_t>(item.bucket)), item.num_tokens);
}

double row_share(const Item& item, const std::vector<Bucket>& buckets, const PackOptions& options) {
  const AloneWork alone = alone_work(item, buckets, options);
  return alone.whole - alone.overhead;
}

PackedStep pack_rows(const Step& step, const std::vector<Bucket>& buckets, const PackOptions& options) {
  CHILIAD_CHECK(options.packs_pictures() ? options.work != nullptr : options.row_work != nullptr,
                "a work model of rows is needed");
  Pieces pieces;
  pieces.reserve(step.items.size());
  for (const Item& item : step.items) pieces.push_back(piece_of(item, buckets, options));
  Ranks ranks(std::move(pieces), static_cast<size_t>(options.num_ranks));
  ranks.even_out();
  PackedStep packed;
  size_t num_slots = 0;
  for (const Pieces& mine : ranks.pieces()) {
    const auto& slots = packed.slots.emplace_back(rows_of(mine, buckets, options));
    double work = 0.0;
    for (const MicroBatch& slot : slots) work += slot.work;
    packed.rank_work.push_back(work);
    num_slots = std::max(num_slots, slots.size());
  }
  for (auto& slots : packed.slots) slots.resize(num_slots);
  return packed;
}

}  // namespace chiliad::stepplan
