#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "chiliad/base/hash.h"

namespace chiliad::stepplan {

/// An agreed change to the plan: from `from_step` on this sample has weight 0.
struct Amendment {
  int64_t from_step = 0;
  int64_t sample = 0;
  std::string reason;
  std::string found_at{};  ///< time, for people; in journal.jsonl alone, and no part of the digest
  bool operator==(const Amendment&) const = default;
};

/// The amendments in the order in which they were agreed. Kept in the run directory (journal.jsonl, fsynced
/// before use) and in every checkpoint.
class Journal {
 public:
  /// Ignores a sample that already has one.
  void add(const Amendment& amendment);
  /// Weight of `sample` in `step`.
  [[nodiscard]] float weight(int64_t sample, int64_t step) const;
  /// What was found of `sample` in `step`, the step before it lost its weight; or null. A replay of that step
  /// takes it from here, whatever the data is by then.
  [[nodiscard]] const Amendment* found_in(int64_t sample, int64_t step) const;
  [[nodiscard]] const std::vector<Amendment>& amendments() const { return amendments_; }
  [[nodiscard]] Digest digest() const;

  [[nodiscard]] std::string to_jsonl() const;
  /// Throws CorruptData with the line.
  [[nodiscard]] static Journal from_jsonl(const std::string& text);

 private:
  std::vector<Amendment> amendments_;
  std::map<int64_t, size_t> by_sample_;  // place in amendments_
};

}  // namespace chiliad::stepplan
