// How a step of documents is cut:
// 1. Documents go to ranks, those of most work first, each to the rank that has least.
// 2. While it helps, the rank with the most work gives a document to another one or swaps one with it.
// 3. Each rank's documents fill rows, the longest first, each into the first row with room. Then the rows of
// a
//    rank are evened out: as many as there are, each document to the row of least work that has room.
// 4. Rows are handed out by work, so that ranks do like amounts in the same slot; ranks get equal slots.
#include "chiliad/stepplan/pack_rows.h"

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

struct Document {
  const Item* item = nullptr;
  double work = 0.0;

  // Most work first; then the plan's order, so that the result is one.
  bool operator<(const Document& other) const {
    return work != other.work ? work > other.work : item->position < other.item->position;
  }
};

using Documents = std::vector<Document>;  // sorted

double sum_of_work(const Documents& documents) {
  double sum = 0.0;
  for (const Document& document : documents) sum += document.work;
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
  Ranks(Documents all, size_t count) : documents_(count), load_(count) {
    std::sort(all.begin(), all.end());
    for (const Document& document : all) {  // stays sorted
      const size_t least = static_cast<size_t>(std::min_element(load_.begin(), load_.end()) - load_.begin());
      documents_[least].push_back(document);
      load_[least] += document.work;
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

  [[nodiscard]] const std::vector<Documents>& documents() const { return documents_; }

 private:
  bool improve(size_t giver) {
    std::vector<size_t> by_load(load_.size());
    std::iota(by_load.begin(), by_load.end(), 0);
    std::stable_sort(by_load.begin(), by_load.end(), [&](size_t a, size_t b) { return load_[a] < load_[b]; });
    Swap best;
    best.worst = load_[giver] * (1.0 - 1e-6);
    const size_t before = documents_[giver].size();
    bool found = false;
    for (size_t i = 0; i < std::min(kMaxPartners, by_load.size() - 1); ++i)
      found |= find_swap(giver, by_load[i], best);
    if (!found || before == 0) return false;
    apply(giver, best);
    return true;
  }

  // Of each document the best partner is the one that halves the difference; it or its neighbour is taken.
  bool find_swap(size_t giver, size_t taker, Swap& best) const {
    const double half = (load_[giver] - load_[taker]) / 2.0;
    bool found = false;
    const auto consider = [&](size_t given, std::optional<size_t> taken) {
      const double moved = documents_[giver][given].work - (taken ? documents_[taker][*taken].work : 0.0);
      const double worst = std::max(load_[giver] - moved, load_[taker] + moved);
      if (moved <= 0.0 || worst >= best.worst) return;
      best = {taker, given, taken, worst};
      found = true;
    };
    const Documents& theirs = documents_[taker];
    for (size_t given = 0; given < documents_[giver].size(); ++given) {
      consider(given, std::nullopt);
      const double wanted = documents_[giver][given].work - half;
      const auto at = std::partition_point(theirs.begin(), theirs.end(),
                                           [&](const Document& d) { return d.work > wanted; });
      const auto near = static_cast<size_t>(at - theirs.begin());
      if (near < theirs.size()) consider(given, near);
      if (near > 0) consider(given, near - 1);
    }
    return found;
  }

  void apply(size_t giver, const Swap& swap) {
    const Document given = take(giver, swap.given);
    if (swap.taken) put(giver, take(swap.taker, *swap.taken));
    put(swap.taker, given);
  }
  Document take(size_t rank, size_t at) {
    const Document document = documents_[rank][at];
    documents_[rank].erase(documents_[rank].begin() + static_cast<ptrdiff_t>(at));
    load_[rank] = sum_of_work(documents_[rank]);
    return document;
  }
  void put(size_t rank, const Document& document) {
    auto& list = documents_[rank];
    list.insert(std::upper_bound(list.begin(), list.end(), document), document);
    load_[rank] = sum_of_work(list);
  }

  std::vector<Documents> documents_;  // of each rank
  std::vector<double> load_;
};

struct Row {
  Documents documents;
  int64_t tokens = 0;
  double work = 0.0;  // of its documents

  void add(const Document& document) {
    documents.push_back(document);
    tokens += document.item->num_tokens;
    work += document.work;
  }
};

std::vector<Row> first_fit(const Documents& documents, int64_t max_tokens) {
  std::vector<Row> rows;
  for (const Document& document : documents) {  // more work is more tokens
    const auto room = [&](const Row& row) { return row.tokens + document.item->num_tokens <= max_tokens; };
    auto row = std::find_if(rows.begin(), rows.end(), room);
    if (row == rows.end()) row = rows.emplace(rows.end());
    row->add(document);
  }
  return rows;
}

/// The same number of rows, of about equal work; nothing where they are too full for that.
std::optional<std::vector<Row>> even_rows(const Documents& documents, size_t count, int64_t max_tokens) {
  std::vector<Row> rows(count);
  for (const Document& document : documents) {
    Row* least = nullptr;
    for (Row& row : rows) {
      if (row.tokens + document.item->num_tokens > max_tokens) continue;
      if (least == nullptr || row.work < least->work) least = &row;
    }
    if (least == nullptr) return std::nullopt;
    least->add(document);
  }
  return rows;
}

MicroBatch finish_row(const Row& row, const PackOptions& options) {
  MicroBatch batch;
  double squares = 0.0;
  for (const Document& document : row.documents) {
    batch.items.push_back(*document.item);
    squares += static_cast<double>(document.item->num_tokens) * document.item->num_tokens;
  }
  std::sort(batch.items.begin(), batch.items.end(),
            [](const Item& a, const Item& b) { return a.position < b.position; });
  batch.work = options.row_work(row.tokens, squares);
  return batch;
}

std::vector<MicroBatch> rows_of(const Documents& documents, const PackOptions& options) {
  std::vector<Row> rows = first_fit(documents, options.max_tokens);
  if (auto even = even_rows(documents, rows.size(), options.max_tokens)) rows = *std::move(even);
  std::vector<MicroBatch> slots;
  slots.reserve(rows.size());
  for (const Row& row : rows) slots.push_back(finish_row(row, options));
  std::stable_sort(slots.begin(), slots.end(),
                   [](const MicroBatch& a, const MicroBatch& b) { return a.work > b.work; });
  return slots;
}

}  // namespace

double document_work(const Item& item, const PackOptions& options) {
  const double tokens = item.num_tokens;
  // The overhead of a row is what is left of two rows above one of both.
  const double alone = options.row_work(item.num_tokens, tokens * tokens);
  const double overhead = 2.0 * alone - options.row_work(2 * int64_t{item.num_tokens}, 2.0 * tokens * tokens);
  return alone - overhead;
}

PackedStep pack_rows(const Step& step, const PackOptions& options) {
  CHILIAD_CHECK(options.row_work != nullptr, "a work model of rows is needed");
  Documents documents;
  documents.reserve(step.items.size());
  for (const Item& item : step.items) {
    CHILIAD_CHECK(item.num_tokens >= 1 && item.num_tokens <= options.max_tokens, "{} tokens in rows of {}",
                  item.num_tokens, options.max_tokens);
    documents.push_back({&item, document_work(item, options)});
  }
  Ranks ranks(std::move(documents), static_cast<size_t>(options.num_ranks));
  ranks.even_out();
  PackedStep packed;
  size_t num_slots = 0;
  for (const Documents& mine : ranks.documents()) {
    const auto& slots = packed.slots.emplace_back(rows_of(mine, options));
    double work = 0.0;
    for (const MicroBatch& slot : slots) work += slot.work;
    packed.rank_work.push_back(work);
    num_slots = std::max(num_slots, slots.size());
  }
  for (auto& slots : packed.slots) slots.resize(num_slots);
  return packed;
}

}  // namespace chiliad::stepplan
