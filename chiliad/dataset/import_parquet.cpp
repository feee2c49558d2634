#include "chiliad/dataset/import_parquet.h"

#include <fmt/core.h>
#include <glob.h>

#include <algorithm>
#include <vector>

#include "chiliad/base/error.h"
#include "chiliad/dataset/detail/draft.h"
#include "chiliad/dataset/detail/parquet_source.h"
#include "chiliad/dataset/detail/tar_build.h"

namespace chiliad::dataset {
namespace {

namespace fs = std::filesystem;

bool has_pattern(const std::string& source) {
  return source.find_first_of("*?[") != std::string::npos;
}

std::vector<fs::path> matches(const std::string& pattern) {
  ::glob_t found{};
  const int failed = ::glob(pattern.c_str(), 0, nullptr, &found);
  std::vector<fs::path> files(found.gl_pathv, found.gl_pathv + (failed == 0 ? found.gl_pathc : 0));
  ::globfree(&found);
  return files;
}

/// Calls `visit` for the files below the folder until it says false; hidden ones are passed over.
template <typename Visit>
void visit_files(const fs::path& folder, const Visit& visit) {
  try {
    for (auto it = fs::recursive_directory_iterator(folder); it != fs::recursive_directory_iterator(); ++it) {
      const bool hidden = it->path().filename().string().starts_with('.');
      if (hidden && it->is_directory()) it.disable_recursion_pending();
      if (!hidden && it->is_regular_file() && !visit(it->path())) return;
    }
  } catch (const fs::filesystem_error& error) {
    throw InvalidInput(error.path1().string(),
                       fmt::format("cannot list the folder: {}", error.code().message()));
  }
}

std::string kind_of(const fs::path& path) {
  return detail::extension_of(path.filename().string());
}

std::vector<fs::path> parquet_files(const std::string& source) {
  std::error_code error;
  std::vector<fs::path> files;
  if (fs::is_directory(source, error)) {
    visit_files(source, [&](const fs::path& path) {
      files.push_back(path);
      return true;
    });
  } else if (fs::exists(source, error)) {
    files = {source};
  } else {
    files = matches(source);
  }
  std::erase_if(files, [](const fs::path& path) { return kind_of(path) != "parquet"; });
  std::sort(files.begin(), files.end());
  if (files.empty()) throw InvalidInput(source, "there is no file .parquet");
  return files;
}

}  // namespace

bool is_parquet(const std::string& source) {
  std::error_code error;
  if (!fs::is_directory(source, error))
    return kind_of(source) == "parquet" && (fs::exists(source, error) || has_pattern(source));
  bool any = false;
  visit_files(source, [&](const fs::path& path) {
    const std::string kind = kind_of(path);
    const bool other = kind == "tar" || detail::media_of(kind) == index::MediaType::kImage;
    any = !other && (any || kind == "parquet");
    return !other;
  });
  return any;
}

TarReport import_parquet(const std::string& source, const fs::path& out, const ParquetColumns& columns,
                         const TarOptions& options, const Progress& progress) {
  detail::check_tar_options(options);
  detail::ParquetSource rows(parquet_files(source), {columns.image, columns.caption}, options);
  return detail::build_tars_of(rows, out, options, progress);
}

}  // namespace chiliad::dataset
