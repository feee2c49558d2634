#include "chiliad/dataset/build_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <unordered_set>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/base/json_text.h"
#include "chiliad/dataset/bad_list.h"
#include "chiliad/dataset/detail/documents.h"
#include "chiliad/dataset/detail/fill_shard.h"
#include "chiliad/dataset/detail/loose_files.h"
#include "chiliad/dataset/detail/record_shards.h"
#include "chiliad/dataset/detail/remote_source.h"
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
  const auto& layouts = layout_names();
  if (options.layout != "auto" &&
      std::find(layouts.begin(), layouts.end(), options.layout) == layouts.end()) {
    throw InvalidInput("layout", fmt::format("expected auto or one of {}, got '{}'", fmt::join(layouts, ", "),
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

/// Samples of these layouts are found while their files are read: nobody knows how many shards there will be.
bool is_streamed(const std::string& layout) {
  return layout == "table" || layout == "conversations";
}

ShardJob job_of(detail::ShardDraft draft) {
  ShardJob job;
  job.files = draft.files;
  for (const detail::SampleDraft& sample : draft.samples) {
    for (const detail::PartDraft& part : sample.parts) job.bytes += static_cast<int64_t>(part.length);
  }
  job.loose = std::move(draft);
  return job;
}

std::vector<detail::ShardDraft> loose_drafts(const detail::SourceListing& listing, const std::string& layout,
                                             int64_t shard_bytes, std::vector<BadSample>& unnamed) {
  if (layout == "text") return detail::draft_text_shards(listing, shard_bytes);
  if (layout == "kohya") return detail::draft_kohya_shards(listing, shard_bytes, unnamed);
  const MediaType media = layout == "tuxpaint" ? MediaType::kTuxpaintText : MediaType::kText;
  return detail::draft_loose_shards(listing, media, shard_bytes);
}

std::vector<ShardJob> make_jobs(const detail::SourceListing& listing, const std::string& layout,
                                const IndexOptions& options, std::vector<BadSample>& unnamed) {
  std::vector<ShardJob> jobs;
  if (layout == "webdataset") {
    for (const index::SourceFile& tar : listing.tars) jobs.push_back({{tar}, {}, tar.size});
  } else if (layout == "jsonl") {
    for (const index::SourceFile& file : listing.lines) jobs.push_back({{file}, {}, file.size});
  } else {
    for (detail::ShardDraft& draft : loose_drafts(listing, layout, options.shard_bytes, unnamed))
      jobs.push_back(job_of(std::move(draft)));
  }
  return jobs;
}

bool same_files(const std::vector<index::SourceFile>& a, const std::vector<index::SourceFile>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.path == y.path && x.size == y.size && x.mtime_ns == y.mtime_ns;
  });
}

/// Whether the shard is of the draft's samples: where drafts are known before their bytes are read, the cut
/// may be another one of the same files.
bool same_samples(const detail::ShardDraft& draft, const detail::FilledShard& filled) {
  if (draft.samples.empty()) return true;  // a tar or JSON Lines: its files decide
  std::unordered_set<std::string> left_out;
  for (const BadSample& bad : filled.bad) left_out.insert(bad.key);
  size_t at = 0;
  for (const detail::SampleDraft& sample : draft.samples) {
    if (at < filled.shard.keys.size() && filled.shard.keys[at] == sample.key) {
      ++at;
    } else if (!left_out.contains(sample.key)) {
      return false;
    }
  }
  return at == filled.shard.keys.size();
}

class IndexBuild {
 public:
  /// `staging`: where the files of a remote source are copied to; null: they lie under the listing's root.
  IndexBuild(fs::path out, const IndexOptions& options, detail::SourceListing listing, std::string layout,
             detail::Staging* staging)
      : out_(std::move(out)),
        options_(options),
        listing_(std::move(listing)),
        layout_(std::move(layout)),
        staging_(staging),
        read_root_(staging == nullptr ? listing_.root : staging->folder()) {}

  IndexReport run(const Progress& progress) {
    check_other_source();
    report_.manifest.layout = layout_;
    report_.manifest.root = listing_.root.string();
    is_streamed(layout_) ? run_stream(progress) : run_jobs(progress);
    std::move(unnamed_.begin(), unnamed_.end(), std::back_inserter(report_.bad));
    finish();
    return std::move(report_);
  }

 private:
  void run_jobs(const Progress& progress) {
    auto jobs = make_jobs(listing_, layout_, options_, unnamed_);
    if (jobs.empty()) refuse_empty();
    int64_t total = 0;
    for (const ShardJob& job : jobs) total += job.bytes;
    ProgressSum sum(progress, total);
    int64_t done = 0;
    for (ShardJob& job : jobs) {
      done += job.bytes;
      add_shard(std::move(job), sum);
      sum.reach(done);
    }
  }

  void run_stream(const Progress& progress) {
    ProgressSum sum(progress, 0);
    const auto add = [&](detail::ShardDraft draft) { add_shard(job_of(std::move(draft)), sum); };
    const detail::FieldNames names{options_.image_key, options_.caption_key};
    if (layout_ == "table") {
      detail::draft_table(listing_, names, options_.shard_bytes, add, unnamed_);
    } else {
      detail::draft_conversations(listing_, options_.shard_bytes, add);
    }
    if (report_.manifest.shards.empty()) refuse_empty();
  }

  [[noreturn]] void refuse_empty() const {
    throw InvalidInput(listing_.root.string(), fmt::format("holds no sample of the layout {}", layout_));
  }

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

  void add_shard(ShardJob job, ProgressSum& sum) {
    if (report_.manifest.shards.empty()) settle_settings();
    const std::string name = fmt::format("{:06d}.chidx", report_.manifest.shards.size());
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
    if (staging_ != nullptr) staging_->fetch(job.files);
    detail::ShardDraft draft;
    if (layout_ == "webdataset") {
      draft = detail::draft_tar_shard(read_root_, job.files.front());
    } else if (layout_ == "jsonl") {
      draft = detail::draft_line_shard(read_root_, job.files.front());
    } else {
      draft = std::move(job.loose);
    }
    auto filled =
        detail::fill_shard(read_root_, std::move(draft), options_, [&](int64_t bytes) { sum.add(bytes); });
    if (staging_ != nullptr) staging_->clear();
    report_.bytes_read += job.bytes;
    write_bad_list(bad_path(path), filled.bad);
    index::write_sidecar(path, filled.shard);
    return filled;
  }

  /// An earlier call's sidecar, if it is of the same files; settings are the same.
  std::optional<detail::FilledShard> reuse(const fs::path& path, const ShardJob& job) const {
    if (!io::stat_file(path).has_value()) return std::nullopt;
    auto bad = read_bad_list(bad_path(path));
    if (!bad.has_value()) return std::nullopt;
    try {
      detail::FilledShard filled{index::read_sidecar(path), *std::move(bad)};
      if (!same_files(filled.shard.files, job.files) || !same_samples(job.loose, filled)) return std::nullopt;
      return filled;
    } catch (const CorruptData&) {
      return std::nullopt;  // made again
    }
  }

  /// What decides, beside the files, what is in a shard. Sidecars of other settings are removed: none may be
  /// taken for one of these.
  void settle_settings() const {
    constexpr int kReaders = 1;  // counts up when readers make something else of the same bytes
    nlohmann::ordered_json settings{{"readers", kReaders},
                                    {"layout", layout_},
                                    {"root", listing_.root.string()},
                                    {"images", listing_.images_folder.string()},
                                    {"block_bytes", options_.block_bytes},
                                    {"shard_bytes", options_.shard_bytes},
                                    {"image_key", options_.image_key},
                                    {"caption_key", options_.caption_key}};
    for (const auto& [file, sampling] : listing_.mixture) {
      settings["mixture"].push_back(
          {file.path, static_cast<int>(sampling.kind), sampling.number, sampling.percent});
    }
    const fs::path path = out_ / "shards" / "settings.json";
    const std::string text = json_text_replacing(settings, 1) + "\n";
    if (io::stat_file(path).has_value() && io::read_text(path, 1 << 20) == text) return;
    io::remove_file(out_ / kManifest);
    remove_sidecars({});
    io::write_atomic(path, text);
  }

  static fs::path bad_path(fs::path sidecar) { return sidecar.replace_extension(".bad.jsonl"); }

  void finish() {
    index::Manifest& manifest = report_.manifest;
    if (manifest.num_samples == 0 && layout_ != "webdataset") {
      throw InvalidInput(manifest.root, "holds no usable sample. See shards/*.bad.jsonl for the reasons");
    }
    manifest.num_bad = static_cast<int64_t>(report_.bad.size());
    manifest.digest = index::manifest_digest(manifest);
    write_bad_list(out_ / "bad.jsonl", report_.bad);
    index::write_manifest(out_, manifest);
    std::set<std::string> wanted;
    for (const index::ShardEntry& shard : manifest.shards) wanted.insert(shard.sidecar);
    remove_sidecars(wanted);  // of an earlier, larger source
  }

  void remove_sidecars(const std::set<std::string>& wanted) const {
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
  detail::Staging* staging_;
  fs::path read_root_;
  IndexReport report_;
  std::vector<BadSample> unnamed_;  // pictures that are in no shard
};

}  // namespace

const std::vector<std::string>& layout_names() {
  static const std::vector<std::string> names{"tuxpaint", "image_text",    "kohya", "webdataset",
                                              "table",    "conversations", "jsonl", "text"};
  return names;
}

namespace {

IndexReport build_locked(detail::SourceListing listing, const std::string& layout, const fs::path& out,
                         const IndexOptions& options, store::Store* store, const Progress& progress) {
  io::make_folders(out / "shards");
  const auto lock = io::FileLock::try_lock(out / "index.lock", "chiliad data index");
  if (!lock.has_value()) {
    throw Unavailable(out.string(),
                      "another process is writing this index. Wait for it, or choose another folder");
  }
  std::optional<detail::Staging> staging;
  if (store != nullptr) staging.emplace(*store, out / "shards" / "incoming");
  return IndexBuild(out, options, std::move(listing), layout, staging ? &*staging : nullptr).run(progress);
}

}  // namespace

IndexReport build_remote_index(store::Store& source, const std::vector<std::string>& names,
                               const fs::path& out, const IndexOptions& options, const Progress& progress) {
  check_options(options);
  auto listing = detail::list_objects(source, names);
  const std::string layout =
      options.layout == "auto" ? detail::detect_remote_layout(listing) : options.layout;
  if (is_streamed(layout) || !options.images.empty()) {
    throw InvalidInput(
        source.url(),
        fmt::format("layout {}: expected webdataset, jsonl, text, image_text, tuxpaint or kohya "
                    "of a store. Make tars of it: chiliad data build",
                    layout));
  }
  return build_locked(std::move(listing), layout, out, options, &source, progress);
}

IndexReport build_index(const fs::path& source, const fs::path& out, const IndexOptions& options,
                        const Progress& progress) {
  check_options(options);
  auto listing = detail::list_source(source, options.images);
  check_outside(source, out);
  const std::string layout = options.layout == "auto" ? detail::detect_layout(listing) : options.layout;
  return build_locked(std::move(listing), layout, out, options, nullptr, progress);
}

}  // namespace chiliad::dataset
