#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chiliad/index/index.h"
#include "chiliad/spec/options/data.h"
#include "chiliad/stepplan/item.h"
#include "chiliad/stepplan/journal.h"

namespace chiliad::stepplan {

/// Samples whose findings are counted together: those of a source (an index of data.sources, or one that a
/// sample names), or of a shard where there is one source.
class SampleGroups {
 public:
  /// `index` outlives it.
  explicit SampleGroups(const index::Index& index);

  [[nodiscard]] uint32_t of(int64_t sample) const;
  /// "source NAME", "source 2" or "shard NAME".
  [[nodiscard]] std::string name(uint32_t group) const;

 private:
  const index::Index& index_;
  bool by_member_ = false;
  bool by_source_ = false;
};

/// Items of weight > 0 that a step has of a group.
struct GroupCount {
  uint32_t group = 0;
  int64_t count = 0;
  bool operator==(const GroupCount&) const = default;
};
/// Ascending groups; those without such items are left out.
[[nodiscard]] std::vector<GroupCount> count_groups(const Step& step, const SampleGroups& groups);

/// One or two words for a reason of an amendment: checksum, short file, storage, picture, caption, other.
[[nodiscard]] std::string reason_kind(std::string_view reason);
/// "checksum 12, picture 3", the most frequent first.
[[nodiscard]] std::string reason_histogram(const std::vector<Amendment>& amendments);

struct BadRateOptions {
  int64_t window = 1000;
  double max_fraction = 0.05;
  double max_fraction_source = 0.10;
};

[[nodiscard]] BadRateOptions bad_rate_options(const spec::DataOptions& data);

/// A bound that was crossed.
struct BadExcess {
  std::optional<uint32_t> group;  ///< nothing: all items together
  int64_t num_bad = 0;
  int64_t num_items = 0;  ///< that the window holds so far, at least 100
  double bound = 0.0;
  std::vector<int64_t> samples;  ///< found bad in the window, in the order of finding
};

/// How much of the order was found bad lately: of its last `window` items, and of the last `window` of each
/// group. An item counts where it is found bad; from then on it has no weight and is not counted at all, so
/// that a few bad items of a small set, met in every epoch, never add up. What a window lacks of its first
/// 100 items counts as good. A function of the steps and what was found in them: no clock, no ranks.
class BadRates {
 public:
  explicit BadRates(const BadRateOptions& options) : options_(options) {}

  /// seen: of the whole step. found: newly, in this step. The excess of the groups comes first, for it says
  /// more.
  [[nodiscard]] std::optional<BadExcess> add_step(std::span<const GroupCount> seen,
                                                  std::span<const Amendment> found,
                                                  const SampleGroups& groups);

  /// For checkpoints: JSON. from_json throws CorruptData.
  [[nodiscard]] std::string to_json() const;
  [[nodiscard]] static BadRates from_json(const std::string& text, const BadRateOptions& options);

 private:
  struct Finding {
    int64_t at = 0;  // items seen when its step was done
    int64_t sample = 0;
  };
  struct Window {
    int64_t seen = 0;
    std::deque<Finding> findings;
  };

  void slide(Window& window) const;
  [[nodiscard]] std::optional<BadExcess> excess(const Window& window, double bound) const;

  BadRateOptions options_;
  Window all_;
  std::map<uint32_t, Window> groups_;
};

/// What to tell of it: group, rate, reasons, the first keys, and what to do.
[[nodiscard]] std::string excess_text(const BadExcess& excess, const Journal& journal,
                                      const index::Index& index, const SampleGroups& groups);

}  // namespace chiliad::stepplan
