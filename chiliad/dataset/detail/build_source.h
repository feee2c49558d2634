#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "chiliad/base/hash.h"
#include "chiliad/dataset/detail/make_sample.h"

namespace chiliad::dataset::detail {

/// What tars are built of: numbered samples.
class BuildSource {
 public:
  BuildSource() = default;
  virtual ~BuildSource() = default;
  BuildSource(const BuildSource&) = delete;
  BuildSource& operator=(const BuildSource&) = delete;

  /// Of the data and of what is read of it; another one is another build.
  [[nodiscard]] virtual Digest digest() const = 0;
  [[nodiscard]] virtual int64_t num_samples() const = 0;
  /// About, for progress.
  [[nodiscard]] virtual int64_t total_bytes() const = 0;

  struct Window {
    int64_t end = 0;
    uint64_t bytes = 0;
  };
  /// Gets the samples [first, end) ready to be made: at most so many, that end soon after so many bytes, but
  /// one at least.
  [[nodiscard]] virtual Window open_window(int64_t first, int64_t max_samples, uint64_t max_bytes) = 0;
  /// Of the window alone. Thread-safe.
  [[nodiscard]] virtual MadeSample make(int64_t sample) const = 0;
  [[nodiscard]] virtual std::string key(int64_t sample) const = 0;
};

}  // namespace chiliad::dataset::detail
