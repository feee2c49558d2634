#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "chiliad/stepplan/balance.h"
#include "chiliad/stepplan/pack.h"
#include "chiliad/stepplan/plan.h"

namespace chiliad::stepplan {

/// An epoch planned without reading any payload.
struct PlanReport {
  int64_t epoch = 0;
  int num_ranks = 1;
  int64_t steps = 0;
  int64_t windows = 0;
  int64_t items = 0;
  int64_t items_min = 0;  ///< of a step
  int64_t items_max = 0;
  int64_t packs = 0;  ///< offline packs that the items came in; 0: none
  Coverage coverage;
  int64_t repeated = 0;  ///< items that the epoch shows again
  int64_t missed = 0;    ///< items in the order that it never shows

  bool packs_documents = false;  ///< items are documents, micro-batches are rows
  bool packs_pictures = false;   ///< mode pack: rows are of pictures
  bool pads = false;             ///< mode pad
  int64_t max_row_tokens = 0;    ///< of rows
  double row_fill = 0.0;         ///< rows: positions / (rows * max_row_tokens); what is missing is not padded

  int64_t tokens = 0;         ///< of captions, without padding; of documents, after the cut
  int64_t padded_tokens = 0;  ///< that micro-batches hold beside them
  int64_t pixels = 0;         ///< of buckets
  int64_t padded_pixels = 0;  ///< mode pad: that micro-batches hold beside them
  double cropped_mean = 0.0;  ///< part of a picture that its bucket cuts off
  int64_t enlarged = 0;       ///< pictures that their bucket makes larger

  Sync sync = Sync::kStep;    ///< where ranks wait for each other, and the balance counts
  double balance_mean = 1.0;  ///< max / mean of the ranks' work, over the steps
  double balance_worst = 1.0;
  double balance_bound_mean = 1.0;  ///< no packing gets below it: items cannot be divided
  double balance_bound_worst = 1.0;
  double balance_time = 1.0;      ///< sum of the maxima / sum of the means
  double balance_in_order = 1.0;  ///< mean where items went to ranks in turn, for comparison; of some steps
  struct ComponentBalance {
    std::string name;
    double mean = 0.0;
    double worst = 1.0;
    double bound_mean = 0.0;
    double bound_worst = 1.0;
  };
  std::vector<ComponentBalance> components;  ///< where there are several
  double slots_mean = 0.0;                   ///< micro-batch slots a step
  double micro_batches = 0.0;                ///< with work, a rank and step

  struct Stage {
    int64_t from = 0;    ///< step
    std::string shapes;  ///< in words
    int64_t steps = 0;   ///< of the epoch
  };
  std::vector<Stage> stages;  ///< where there are several

  struct BucketCount {
    Bucket bucket;
    int64_t items = 0;
    int64_t steps = 0;  ///< that show some of them
  };
  std::vector<BucketCount> buckets;  ///< those with items

  /// What a source gives in these steps; none where there is one alone.
  struct SourceItems {
    std::string name;
    Coverage coverage;
    int64_t items = 0;
    double epochs = 0.0;  ///< of its own
    double share = 0.0;   ///< of the items shown
  };
  std::vector<SourceItems> sources;

  double displacement = 0.0;     ///< mean way of an item from its place in the index, 1: as in a full shuffle
  double neighbours_kept = 0.0;  ///< part of the items that directly follow their predecessor in the index

  [[nodiscard]] std::string to_json() const;
  [[nodiscard]] std::string to_table() const;

 private:
  [[nodiscard]] std::string table_of_items() const;
  [[nodiscard]] std::string table_of_work() const;
  [[nodiscard]] std::string table_of_sources() const;
};

/// What the sources of a mix give in the steps [first, end).
[[nodiscard]] std::vector<PlanReport::SourceItems> items_of_sources(const Plan& plan, int64_t first,
                                                                    int64_t end);

/// Steps done, of how many.
using PlanProgress = std::function<void(int64_t done, int64_t total)>;

/// Plans all steps of `epoch`.
[[nodiscard]] PlanReport make_report(const Plan& plan, const Journal& journal, int64_t epoch,
                                     const PackOptions& options, const PlanProgress& progress = {});

}  // namespace chiliad::stepplan
