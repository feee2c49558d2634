#include "chiliad/features/verify_columns.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/base/hash.h"
#include "chiliad/base/thread_pool.h"
#include "chiliad/features/column.h"
#include "chiliad/features/part.h"
#include "chiliad/io/file.h"

namespace chiliad::features {
namespace {

namespace fs = std::filesystem;

/// What was found in one file.
struct Checked {
  std::vector<std::string> problems;
  int64_t num_features = 0;
  int64_t bytes_read = 0;
};

void check_entries(const fs::path& path, const Digest& key, Checked& checked) {
  const io::File file = io::File::open_read(path);
  std::vector<std::byte> bytes;
  for (const FeatureEntry& entry : read_part(path, key).entries) {
    bytes.resize(static_cast<size_t>(entry.num_bytes));
    file.read_at(entry.begin, bytes);
    ++checked.num_features;
    checked.bytes_read += entry.num_bytes;
    const uint64_t checksum = hash64(std::span<const std::byte>(bytes));
    if (checksum == entry.checksum) continue;
    checked.problems.push_back(fmt::format(
        "feature {}{}: checksum {:016x}, expected {:016x}. Remove the file and run `chiliad encode RUN.yaml` "
        "again",
        entry.id.number, entry.id.second ? ".2" : "", checksum, entry.checksum));
  }
}

Checked check_file(const fs::path& path, const Digest& key) {
  Checked checked;
  if (!fs::exists(path)) {
    checked.problems.emplace_back("is missing from a whole column. Run `chiliad encode RUN.yaml` again");
    return checked;
  }
  try {
    check_entries(path, key, checked);
  } catch (const Error& error) {
    checked.problems.emplace_back(error.what());
  }
  return checked;
}

std::vector<fs::path> files_of(const fs::path& column, const ColumnFile& content) {
  std::vector<fs::path> files;
  for (const auto& [shard, count] : content.parts) {
    for (int64_t part = 0; part < count; ++part) files.push_back(part_path(column, shard, part));
  }
  if (content.kind == Kind::kText) files.push_back(empty_text_path(column));
  return files;
}

std::vector<fs::path> columns_of(const fs::path& index) {
  std::vector<fs::path> columns;
  if (!fs::is_directory(index / "columns")) return columns;
  for (const auto& entry : fs::directory_iterator(index / "columns")) {
    if (entry.is_directory()) columns.push_back(entry.path());
  }
  std::sort(columns.begin(), columns.end());
  return columns;
}

/// A column to be read.
struct Whole {
  fs::path index;
  fs::path folder;
  ColumnFile content;
};

/// Those of an index; the others go to the report.
void find_columns(const fs::path& index, std::vector<Whole>& columns, ColumnsReport& report) {
  for (const auto& folder : columns_of(index)) {
    if (!is_whole(folder)) {
      report.unfinished.push_back(folder.filename().string());
      continue;
    }
    ++report.num_columns;
    try {
      columns.push_back({index, folder, read_column_file(folder)});
    } catch (const CorruptData& error) {
      report.problems.push_back({folder.lexically_relative(index).string(), error.what()});
    }
  }
}

void check_column(const Whole& column, int threads, const std::function<void(int64_t)>& read,
                  ColumnsReport& report) {
  const auto files = files_of(column.folder, column.content);
  std::vector<Checked> found(files.size());
  std::mutex mutex;  // guards report
  ThreadPool pool(threads, 64, "verify");
  for (size_t i = 0; i < files.size(); ++i) {
    pool.submit([&, i] {
      found[i] = check_file(files[i], column.content.key);
      std::lock_guard lock(mutex);
      report.num_features += found[i].num_features;
      report.bytes_read += found[i].bytes_read;
      read(report.bytes_read);
    });
  }
  pool.close();
  for (size_t i = 0; i < files.size(); ++i) {
    for (auto& what : found[i].problems)
      report.problems.push_back({files[i].lexically_relative(column.index).string(), std::move(what)});
  }
}

}  // namespace

ColumnsReport verify_columns(const index::Index& index, int threads,
                             const std::function<void(int64_t done, int64_t total)>& progress) {
  CHILIAD_CHECK_GT(threads, 0);
  ColumnsReport report;
  std::vector<Whole> columns;
  for (const auto& member : index.members()) find_columns(member.folder, columns, report);
  int64_t total = 0;
  for (const Whole& column : columns) total += column.content.summary.num_bytes;
  const auto read = [&](int64_t done) {
    if (progress) progress(done, total);
  };
  for (const Whole& column : columns) check_column(column, threads, read, report);
  return report;
}

}  // namespace chiliad::features
