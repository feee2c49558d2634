#include "chiliad/observe/sample_folder.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <utility>

#include "chiliad/io/file.h"

namespace chiliad::observe {

std::vector<SampleFile> list_samples(const std::filesystem::path& folder) {
  constexpr std::string_view kStem = "step-";
  std::vector<SampleFile> files;
  std::error_code missing;
  for (const auto& entry : std::filesystem::directory_iterator(folder, missing)) {
    const std::string name = entry.path().stem();
    if (entry.path().extension() != ".png" || !name.starts_with(kStem)) continue;
    SampleFile file{0, entry.path()};
    const char* end = name.data() + name.size();
    const auto read = std::from_chars(name.data() + kStem.size(), end, file.step);
    if (read.ec == std::errc() && read.ptr == end) files.push_back(std::move(file));
  }
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.step < b.step; });
  return files;
}

SampleWatch::SampleWatch(std::filesystem::path folder) : folder_(std::move(folder)) {
  static_cast<void>(take());
}

std::vector<SampleFile> SampleWatch::take() {
  std::vector<SampleFile> fresh;
  for (auto& file : list_samples(folder_)) {
    const auto stamp = io::stat_file(file.path);
    if (!stamp.has_value()) continue;
    const auto [it, is_new] = seen_.emplace(file.path, stamp->mtime_ns);
    if (!is_new && std::exchange(it->second, stamp->mtime_ns) == stamp->mtime_ns) continue;
    fresh.push_back(std::move(file));
  }
  return fresh;
}

}  // namespace chiliad::observe
