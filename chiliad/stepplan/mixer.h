#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "chiliad/spec/options/data.h"

namespace chiliad::stepplan {

/// Shares of the leaves of a tree of sources, by step.
class SourceShares {
 public:
  /// `sizes`: items of each leaf, in order. Throws InvalidInput where no leaf has a weight.
  SourceShares(const spec::DataOptions& options, const std::vector<int64_t>& sizes);

  /// The leaves' shares, which add up to 1; those that are not `active` get nothing, their siblings theirs.
  /// All 0: no active one has a weight.
  [[nodiscard]] std::vector<double> at(int64_t step, const std::vector<bool>& active) const;
  /// From here on shares do not change.
  [[nodiscard]] int64_t constant_from() const { return constant_from_; }

 private:
  std::vector<spec::DataSource> tree_;
  int64_t constant_from_ = 0;
};

/// The leaves of a tree of sources, in order.
[[nodiscard]] std::vector<spec::DataSource> leaves_of(const std::vector<spec::DataSource>& sources);

/// How many items each source gives to each step: whole numbers that add up to the batch, so that after any
/// number of steps a source has given its share within less than one item, where shares are constant (they
/// are multiples of 2^-20). A source whose epochs are over gives nothing more; the others get its share. The
/// last step holds what is left. A function of the step alone: by a table that grows to the furthest step
/// asked for, or, where shares are constant and no source ends, to one period. Thread-safe. Source: earliest
/// deadline first within quotas, as in R. Tijdeman, "The chairman assignment problem", 1980.
class Mixer {
 public:
  struct Options {
    int64_t batch = 1;
    std::vector<int64_t> available;  ///< items that a source has in all its epochs; -1: without end
  };
  Mixer(SourceShares shares, Options options);

  /// Items that each source has given before `step`.
  [[nodiscard]] std::vector<int64_t> given_before(int64_t step) const;
  /// Steps until all sources have ended; nothing: there is always one more.
  [[nodiscard]] std::optional<int64_t> num_steps() const { return num_steps_; }

 private:
  /// What is known before a step.
  struct State {
    int64_t step = 0;
    std::vector<int64_t> given;
    std::vector<int64_t> ahead;  // of its share: 2^20 times items
  };

  void advance(State& state) const;
  [[nodiscard]] std::vector<int64_t> parts_of(const State& state, const std::vector<bool>& active) const;
  void settle_ended(State& state, std::vector<bool>& active) const;
  [[nodiscard]] State state_at(int64_t step) const;

  SourceShares shares_;
  Options options_;
  int64_t period_ = 0;  // steps after which all repeats; 0: never
  std::vector<int64_t> period_items_;
  std::optional<int64_t> num_steps_;
  mutable std::mutex mutex_;          // guards the rest
  mutable std::vector<State> table_;  // of each kTableSteps-th step
  mutable State recent_;              // the one asked for last
};

}  // namespace chiliad::stepplan
