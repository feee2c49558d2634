#include "chiliad/dataset/verify.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <mutex>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/base/hash.h"
#include "chiliad/base/thread_pool.h"
#include "chiliad/dataset/remote_names.h"
#include "chiliad/io/file.h"

namespace chiliad::dataset {
namespace {

std::vector<Problem> check_files(const index::Index& index, const index::Shard& shard) {
  std::vector<Problem> problems;
  for (const index::SourceFile& file : shard.files) {
    const auto stamp = io::stat_file(std::filesystem::path(index.manifest().root) / file.path);
    if (!stamp.has_value()) {
      problems.push_back({file.path, "", "is missing"});
    } else if (stamp->size != file.size) {
      problems.push_back({file.path, "", fmt::format("has {} bytes, expected {}", stamp->size, file.size)});
    } else if (stamp->mtime_ns != file.mtime_ns) {
      problems.push_back({file.path, "", "was modified after it was indexed"});
    }
  }
  return problems;
}

/// What is wrong with the part's bytes; empty if nothing.
std::string check_part(const index::Index& index, const index::Shard& shard, const index::Part& part) {
  try {
    const io::File file = io::File::open_read(index.part_path(shard, part));
    std::vector<std::byte> bytes(part.length);
    file.read_at(static_cast<int64_t>(part.offset), bytes);
    const uint64_t checksum = hash64(bytes);
    if (checksum == part.checksum) return {};
    return fmt::format("{} bytes at {}: checksum {:016x}, expected {:016x}", part.length, part.offset,
                       checksum, part.checksum);
  } catch (const Error& error) {
    return error.what();
  }
}

/// first: number of the shard's first sample in the index.
std::vector<Problem> check_sample(const index::Index& index, const index::Shard& shard, int64_t first,
                                  size_t i) {
  std::vector<Problem> problems;
  const index::Sample& sample = shard.samples[i];
  for (uint32_t p = sample.first_part; p < sample.first_part + sample.num_parts; ++p) {
    std::string what = check_part(index, shard, shard.parts[p]);
    if (what.empty()) continue;
    problems.push_back({shard.files[shard.parts[p].file].path, shard.keys[i], std::move(what),
                        first + static_cast<int64_t>(i), p});
  }
  return problems;
}

int64_t bytes_of(const index::Shard& shard) {
  int64_t bytes = 0;
  for (const index::Part& part : shard.parts) bytes += static_cast<int64_t>(part.length);
  return bytes;
}

}  // namespace

VerifyReport verify(const index::Index& index, int threads, const Progress& progress) {
  CHILIAD_CHECK_GT(threads, 0);
  refuse_remote(index);
  int64_t total = 0;
  for (const index::Shard& shard : index.shards()) total += bytes_of(shard);
  VerifyReport report;
  const auto append = [&](std::vector<Problem> problems) {
    std::move(problems.begin(), problems.end(), std::back_inserter(report.problems));
  };
  int64_t first = 0;
  for (const index::Shard& shard : index.shards()) {
    append(check_files(index, shard));
    std::vector<std::vector<Problem>> found(shard.samples.size());
    std::mutex mutex;  // guards report.bytes_read
    ThreadPool pool(threads, 64, "verify");
    for (const index::Block& block : shard.blocks) {
      pool.submit([&] {
        for (size_t i = block.first_sample; i < block.first_sample + block.num_samples; ++i) {
          found[i] = check_sample(index, shard, first, i);
        }
        std::lock_guard lock(mutex);
        report.bytes_read += static_cast<int64_t>(block.payload_bytes);
        if (progress) progress(report.bytes_read, total);
      });
    }
    pool.close();
    for (auto& problems : found) append(std::move(problems));
    report.num_parts += static_cast<int64_t>(shard.parts.size());
    first += static_cast<int64_t>(shard.samples.size());
  }
  return report;
}

}  // namespace chiliad::dataset
