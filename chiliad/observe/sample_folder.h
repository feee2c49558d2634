#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <vector>

namespace chiliad::observe {

/// Pictures that a run made of itself: samples/step-N.png of its directory.
struct SampleFile {
  int64_t step = 0;
  std::filesystem::path path;
};

/// Ascending steps; none where there is no folder.
[[nodiscard]] std::vector<SampleFile> list_samples(const std::filesystem::path& folder);

/// Finds pictures that are written, or written again, while it lives. Not thread-safe.
class SampleWatch {
 public:
  explicit SampleWatch(std::filesystem::path folder);
  /// Since the last call.
  [[nodiscard]] std::vector<SampleFile> take();

 private:
  std::filesystem::path folder_;
  std::map<std::filesystem::path, int64_t> seen_;  // modification times
};

}  // namespace chiliad::observe
