#include "chiliad/dataset/build_index.h"

#include <fmt/core.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/dataset/detail/bad_list.h"
#include "chiliad/dataset/detail/documents.h"
#include "chiliad/dataset/detail/fill_shard.h"
#include "chiliad/dataset/detail/loose_files.h"
#include "chiliad/dataset/detail/webdataset.h"
#include "chiliad/index/content.h"
#include "chiliad/io/file.h"

namespace chiliad::dataset {
namespace {

namespace fs = std::filesystem;
using index::MediaType;

constexpr const char* kManifest = "manifest.json";

void check_options(const IndexOptions& options) {
  if (options.threads < 1 || options.threads > 1024) {
    throw InvalidInput("threads", fmt::format("expected 1 to 1024, got {}", options.threads));
  }
  if (options.block_bytes < 1 || options.shard_bytes < 1) {
    throw InvalidInput("block_bytes, shard_bytes", "expected a positive number of bytes");
  }
  const std::set<std::string> layouts{"auto", "tuxpaint", "image_text", "webdataset", "jsonl", "text"};
  if (!layouts.contains(options.layout)) {
    throw InvalidInput("layout",
                       fmt::format("expected auto, tuxpaint, image_text, webdataset, jsonl or text, got "
                                   "'{}'",
                                   options.layout));
  }
}

/// The source is read only: an index inside it would also be listed as data.
void check_outside(const fs::path& source, const fs::path& out) {
  if (!fs::is_directory(source)) return;
  const fs::path root = fs::canonical(source);
  const fs::path target = fs::weakly_canonical(fs::absolute(out));
  const auto [root_end, target_end] = std::mismatch(root.begin(), root.end(), target.begin(), target.end());
  if (root_end != root.end()) return;
  throw InvalidInput(out.string(),
                     fmt::format("lies inside the source {}. Choose a folder outside it", root.string()));
}

/// Adds up bytes from several threads and passes them on, one call at a time.
class ProgressSum {
 public:
  ProgressSum(const Progress& progress, int64_t total) : progress_(progress), total_(total) {}

  void add(int64_t bytes) {
    std::lock_guard lock(mutex_);
    done_ += bytes;
    if (progress_) progress_(done_, total_);
  }
  /// Sets the sum: a shard is done, with bytes (headers, rests) that belong to no sample.
  void reach(int64_t bytes) { add(bytes - done()); }

 private:
  int64_t done() {
    std::lock_guard lock(mutex_);
    return done_;
  }

  const Progress& progress_;
  const int64_t total_;
  std::mutex mutex_;  // guards done_
  int64_t done_ = 0;
};

/// A shard to be indexed: its files are known, for a tar or JSON Lines the samples are not.
struct ShardJob {
  std::vector<index::SourceFile> files;
  detail::ShardDraft loose;  ///< empty for a tar or JSON Lines
  int64_t bytes = 0;
};

std::vector<ShardJob> make_jobs(const detail::SourceListing& listing, const std::string& layout,
                                const IndexOptions& options) {
  std::vector<ShardJob> jobs;
  if (layout == "webdataset") {
    for (const index::SourceFile& tar : listing.tars) jobs.push_back({{tar}, {}, tar.size});
    return jobs;
  }
  if (layout == "jsonl") {
    for (const index::SourceFile& file : listing.lines) jobs.push_back({{file}, {}, file.size});
    return jobs;
  }
  const MediaType media = layout == "tuxpaint" ? MediaType::kTuxpaintText : MediaType::kText;
  auto drafts = layout == "text" ? detail::draft_text_shards(listing, options.shard_bytes)
                                 : detail::draft_loose_shards(listing, media, options.shard_bytes);
  for (detail::ShardDraft& draft : drafts) {
    ShardJob job;
    job.files = draft.files;
    for (const index::SourceFile& file : draft.files) job.bytes += file.size;
    job.loose = std::move(draft);
    jobs.push_back(std::move(job));
  }
  return jobs;
}

bool same_files(const std::vector<index::SourceFile>& a, const std::vector<index::SourceFile>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.path == y.path && x.size == y.size && x.mtime_ns == y.mtime_ns;
  });
}

class IndexBuild {
 public:
  IndexBuild(fs::path out, const IndexOptions& options, detail::SourceListing listing, std::string layout)
      : out_(std::move(out)), options_(options), listing_(std::move(listing)), layout_(std::move(layout)) {}

  IndexReport run(const Progress& progress) {
    auto jobs = make_jobs(listing_, layout_, options_);
    if (jobs.empty()) {
      throw InvalidInput(listing_.root.string(), fmt::format("holds no sample of the layout {}", layout_));
    }
    check_other_source();
    int64_t total = 0;
    for (const ShardJob& job : jobs) total += job.bytes;
    ProgressSum sum(progress, total);
    report_.manifest.layout = layout_;
    report_.manifest.root = listing_.root.string();
    int64_t done = 0;
    for (size_t i = 0; i < jobs.size(); ++i) {
      done += jobs[i].bytes;
      add_shard(fmt::format("{:06d}.chidx", i), std::move(jobs[i]), sum);
      sum.reach(done);
    }
    finish();
    return std::move(report_);
  }

 private:
  void check_other_source() const {
    if (options_.replace || !io::stat_file(out_ / kManifest).has_value()) return;
    std::string other;
    try {
      other = index::read_manifest(out_).root;
    } catch (const Error&) {
      return;  // damaged, or of another version: nothing to lose
    }
    if (other == listing_.root.string()) return;
    throw InvalidInput(out_.string(),
                       fmt::format("holds the index of {}, expected that of {} or nothing. Give "
                                   "another folder, or --replace",
                                   other, listing_.root.string()));
  }

  void add_shard(const std::string& name, ShardJob job, ProgressSum& sum) {
    const fs::path path = out_ / "shards" / name;
    auto filled = reuse(path, job);
    if (filled.has_value()) {
      ++report_.shards_reused;
    } else {
      filled = make(path, std::move(job), sum);
    }
    const index::Shard& shard = filled->shard;
    index::ShardEntry entry{name, shard.content, static_cast<int64_t>(shard.samples.size()), 0};
    for (const index::Block& block : shard.blocks)
      entry.payload_bytes += static_cast<int64_t>(block.payload_bytes);
    report_.manifest.num_samples += entry.num_samples;
    report_.manifest.shards.push_back(std::move(entry));
    std::move(filled->bad.begin(), filled->bad.end(), std::back_inserter(report_.bad));
  }

  detail::FilledShard make(const fs::path& path, ShardJob job, ProgressSum& sum) {
    // An index whose shards are being replaced is no index: its manifest would name what is no longer there.
    io::remove_file(out_ / kManifest);
    detail::ShardDraft draft;
    if (layout_ == "webdataset") {
      draft = detail::draft_tar_shard(listing_.root, job.files.front());
    } else if (layout_ == "jsonl") {
      draft = detail::draft_line_shard(listing_.root, job.files.front());
    } else {
      draft = std::move(job.loose);
    }
    auto filled =
        detail::fill_shard(listing_.root, std::move(draft), options_, [&](int64_t bytes) { sum.add(bytes); });
    report_.bytes_read += job.bytes;
    detail::write_bad_list(bad_path(path), filled.bad);
    index::write_sidecar(path, filled.shard);
    return filled;
  }

  /// An earlier call's sidecar, if it is of the same files, layout and settings.
  std::optional<detail::FilledShard> reuse(const fs::path& path, const ShardJob& job) const {
    if (!io::stat_file(path).has_value()) return std::nullopt;
    auto bad = detail::read_bad_list(bad_path(path));
    if (!bad.has_value()) return std::nullopt;
    try {
      detail::FilledShard filled{index::read_sidecar(path), *std::move(bad)};
      if (!same_files(filled.shard.files, job.files) || !same_settings(filled.shard)) return std::nullopt;
      return filled;
    } catch (const CorruptData&) {
      return std::nullopt;  // made again
    }
  }

  bool same_settings(const index::Shard& shard) const {
    const MediaType other = layout_ == "tuxpaint" ? MediaType::kText : MediaType::kTuxpaintText;
    const bool other_layout = std::any_of(shard.parts.begin(), shard.parts.end(),
                                          [&](const index::Part& p) { return p.media == other; });
    const auto blocks = detail::cut_blocks(shard, options_.block_bytes);
    const bool same_blocks =
        std::equal(blocks.begin(), blocks.end(), shard.blocks.begin(), shard.blocks.end(),
                   [](const auto& a, const auto& b) { return a.first_sample == b.first_sample; });
    return !other_layout && same_blocks;
  }

  static fs::path bad_path(fs::path sidecar) { return sidecar.replace_extension(".bad.jsonl"); }

  void finish() {
    index::Manifest& manifest = report_.manifest;
    if (manifest.num_samples == 0 && layout_ != "webdataset") {
      throw InvalidInput(manifest.root, "holds no usable sample. See shards/*.bad.jsonl for the reasons");
    }
    manifest.num_bad = static_cast<int64_t>(report_.bad.size());
    manifest.digest = index::manifest_digest(manifest);
    detail::write_bad_list(out_ / "bad.jsonl", report_.bad);
    index::write_manifest(out_, manifest);
    remove_other_sidecars();
  }

  /// Sidecars of an earlier, larger source.
  void remove_other_sidecars() const {
    std::set<std::string> wanted;
    for (const index::ShardEntry& shard : report_.manifest.shards) wanted.insert(shard.sidecar);
    for (const auto& entry : fs::directory_iterator(out_ / "shards")) {
      const fs::path& path = entry.path();
      if (path.extension() != ".chidx" || wanted.contains(path.filename().string())) continue;
      io::remove_file(path);
      io::remove_file(bad_path(path));
    }
  }

  fs::path out_;
  const IndexOptions& options_;
  detail::SourceListing listing_;
  std::string layout_;
  IndexReport report_;
};

}  // namespace

IndexReport build_index(const fs::path& source, const fs::path& out, const IndexOptions& options,
                        const Progress& progress) {
  check_options(options);
  auto listing = detail::list_source(source);
  check_outside(source, out);
  std::string layout = options.layout == "auto" ? detail::detect_layout(listing) : options.layout;
  io::make_folders(out / "shards");
  const auto lock = io::FileLock::try_lock(out / "index.lock", "chiliad data index");
  if (!lock.has_value()) {
    throw Unavailable(out.string(),
                      "another process is writing this index. Wait for it, or choose another folder");
  }
  return IndexBuild(out, options, std::move(listing), std::move(layout)).run(progress);
}

}  // namespace chiliad::dataset
