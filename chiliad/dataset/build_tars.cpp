#include "chiliad/dataset/build_tars.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "chiliad/base/error.h"
#include "chiliad/base/json_text.h"
#include "chiliad/base/thread_pool.h"
#include "chiliad/dataset/bad_list.h"
#include "chiliad/dataset/detail/index_source.h"
#include "chiliad/dataset/detail/near_duplicates.h"
#include "chiliad/dataset/detail/tar_build.h"
#include "chiliad/dataset/detail/tar_writer.h"
#include "chiliad/dataset/remote_names.h"
#include "chiliad/io/file.h"

// 1. Samples are made in windows, in parallel, and written in the order of the source.
// 2. A tar that reaches its size is fsynced and renamed; then build/NNNNNN.* say which samples it holds or
// dropped.
// 3. A later call takes over what these say, from 000000 on without a gap, and goes on behind it.
// 4. build.json comes last.
namespace chiliad::dataset {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using index::MediaType;

constexpr int64_t kMaxStateBytes = 1LL << 30;

void check_options(const TarOptions& options) {
  const auto require = [](bool holds, const char* name, const std::string& what) {
    if (!holds) throw InvalidInput(name, "expected " + what);
  };
  require(options.threads >= 1 && options.threads <= 1024, "threads", "1 to 1024");
  require(options.tar_bytes >= 1, "tar_bytes", "a positive number of bytes");
  require(options.longest_side >= 0 && options.shortest_side >= 0, "longest_side, shortest_side",
          "0 or more pixels");
  require(options.quality >= 1 && options.quality <= 100, "quality", "1 to 100");
  require(options.duplicate_bits >= -1 && options.duplicate_bits <= detail::NearDuplicates::kMostBits,
          "duplicate_bits", fmt::format("-1 to {}", detail::NearDuplicates::kMostBits));
}

void check_index(const index::Index& index) {
  refuse_remote(index);
  for (const index::Shard& shard : index.shards()) {
    for (const index::Caption& caption : shard.captions) {
      const bool conversation = shard.parts[caption.part].media == MediaType::kConversation;
      if (!conversation && caption.language == 0) continue;
      throw InvalidInput(index.manifest().root,
                         fmt::format("holds {}, which the tars cannot keep. Use the data where it lies",
                                     conversation ? "conversations" : "captions by language"));
    }
  }
}

/// What became of a run of samples: one tar, or none where all were dropped.
struct Segment {
  int64_t first = 0;
  int64_t end = 0;
  int64_t samples = 0;
  int64_t bytes = 0;  ///< of the tar; 0: there is none
  int64_t transcoded = 0;
  int64_t resized = 0;
  std::vector<BadSample> dropped;
  std::map<std::string, int64_t> kinds;
  std::vector<uint64_t> hashes;  ///< where duplicates are looked for: of the samples written
  std::vector<int64_t> hashed;   ///< these samples

  [[nodiscard]] Json json() const {
    return {{"first", first},           {"end", end},         {"samples", samples}, {"bytes", bytes},
            {"transcoded", transcoded}, {"resized", resized}, {"dropped", kinds},   {"hashes", hashes},
            {"hashed", hashed}};
  }
  void read(const Json& json) {
    first = json.at("first");
    end = json.at("end");
    samples = json.at("samples");
    bytes = json.at("bytes");
    transcoded = json.at("transcoded");
    resized = json.at("resized");
    kinds = json.at("dropped").get<std::map<std::string, int64_t>>();
    hashes = json.at("hashes").get<std::vector<uint64_t>>();
    hashed = json.at("hashed").get<std::vector<int64_t>>();
  }
};

class TarBuild {
 public:
  TarBuild(detail::BuildSource& source, fs::path out, const TarOptions& options, const Progress& progress)
      : source_(source),
        out_(std::move(out)),
        options_(options),
        progress_(progress),
        duplicates_(std::max(options.duplicate_bits, 0)) {}

  TarReport run() {
    settle_settings();
    take_over();
    while (segment_.end < source_.num_samples()) add_window();
    if (segment_.end > segment_.first) finish_segment();
    write_bad_list(out_ / "dropped.jsonl", dropped_);
    write_report();
    return std::move(report_);
  }

 private:
  void settle_settings() const {
    const Json settings{{"version", 1},
                        {"index", source_.digest().hex()},
                        {"tar_bytes", options_.tar_bytes},
                        {"where", options_.where},
                        {"longest_side", options_.longest_side},
                        {"shortest_side", options_.shortest_side},
                        {"quality", options_.quality},
                        {"baseline", options_.baseline},
                        {"duplicate_bits", options_.duplicate_bits}};
    const fs::path path = out_ / "build" / "settings.json";
    const std::string text = json_text_replacing(settings, 1) + "\n";
    if (!io::stat_file(path).has_value()) return io::write_atomic(path, text);
    if (io::read_text(path, kMaxStateBytes) == text) return;
    throw InvalidInput(
        out_.string(),
        "holds a build of another index or with other options. Give another folder, or the options "
        "in build/settings.json");
  }

  [[nodiscard]] fs::path state_path(int64_t number, const char* ending) const {
    return out_ / "build" / fmt::format("{:06d}{}", number, ending);
  }
  [[nodiscard]] fs::path tar_path(int64_t number) const {
    return out_ / "tars" / fmt::format("{:06d}.tar", number);
  }

  /// The segment of an earlier call; nothing if it is not whole.
  [[nodiscard]] std::optional<Segment> read_segment() const {
    const fs::path path = state_path(num_segments_, ".json");
    if (!io::stat_file(path).has_value()) return std::nullopt;
    Segment segment;
    try {
      segment.read(parse_json<Json>(io::read_text(path, kMaxStateBytes)));
    } catch (const Json::exception&) {
      return std::nullopt;
    }
    auto dropped = read_bad_list(state_path(num_segments_, ".dropped.jsonl"));
    const auto tar = io::stat_file(tar_path(report_.num_tars));
    const bool whole = dropped.has_value() && segment.first == segment_.first &&
                       (segment.bytes == 0 || (tar.has_value() && tar->size == segment.bytes));
    if (!whole) return std::nullopt;
    segment.dropped = *std::move(dropped);
    return segment;
  }

  void take_over() {
    for (auto segment = read_segment(); segment.has_value(); segment = read_segment()) {
      for (const uint64_t hash : segment->hashes) duplicates_.keep(hash);
      hashed_.insert(hashed_.end(), segment->hashed.begin(), segment->hashed.end());
      if (segment->bytes > 0) ++report_.tars_reused;
      count(*segment);
    }
  }

  /// Makes samples up to a bound of memory, then writes them in order.
  void add_window() {
    constexpr int64_t kSamplesAThread = 16;
    constexpr uint64_t kWindowBytes = 256 << 20;
    const int64_t first = segment_.end;
    const auto [end, bytes] = source_.open_window(first, kSamplesAThread * options_.threads, kWindowBytes);
    std::vector<detail::MadeSample> made(static_cast<size_t>(end - first));
    ThreadPool pool(options_.threads, made.size(), "build");
    for (int64_t sample = first; sample < end; ++sample)
      pool.submit([&, sample] { made[static_cast<size_t>(sample - first)] = source_.make(sample); });
    pool.close();
    for (int64_t sample = first; sample < end; ++sample) {
      add_sample(sample, made[static_cast<size_t>(sample - first)]);
      segment_.end = sample + 1;
      if (tar_.has_value() && tar_->size() >= options_.tar_bytes) finish_segment();
    }
    done_bytes_ += static_cast<int64_t>(bytes);
    if (progress_) progress_(std::min(done_bytes_, source_.total_bytes()), source_.total_bytes());
  }

  void add_sample(int64_t sample, detail::MadeSample& made) {
    if (made.dropped.empty() && options_.duplicate_bits >= 0) {
      const auto same = duplicates_.find(made.hash);
      if (same.has_value()) {
        made.dropped = "duplicate";
        made.reason = "looks like " + source_.key(hashed_.at(*same));
      }
    }
    if (!made.dropped.empty()) {
      ++segment_.kinds[made.dropped];
      segment_.dropped.push_back({source_.key(sample), "", made.dropped + ": " + made.reason});
      return;
    }
    if (!tar_.has_value()) tar_.emplace(tar_path(report_.num_tars));
    for (const detail::Member& member : made.members)
      tar_->add(fmt::format("{:09d}.{}", sample, member.extension), member.bytes);
    ++segment_.samples;
    segment_.transcoded += made.transcoded ? 1 : 0;
    segment_.resized += made.resized ? 1 : 0;
    if (options_.duplicate_bits < 0) return;
    duplicates_.keep(made.hash);
    hashed_.push_back(sample);
    segment_.hashes.push_back(made.hash);
    segment_.hashed.push_back(sample);
  }

  void finish_segment() {
    if (tar_.has_value()) segment_.bytes = tar_->finish();
    tar_.reset();
    write_bad_list(state_path(num_segments_, ".dropped.jsonl"), segment_.dropped);
    io::write_atomic(state_path(num_segments_, ".json"), json_text(segment_.json()) + "\n");
    count(segment_);
  }

  /// The segment is durable; the next begins.
  void count(const Segment& segment) {
    ++num_segments_;
    if (segment.bytes > 0) ++report_.num_tars;
    report_.num_samples += segment.samples;
    report_.bytes_written += segment.bytes;
    report_.num_transcoded += segment.transcoded;
    report_.num_resized += segment.resized;
    for (const auto& [kind, number] : segment.kinds) report_.dropped[kind] += number;
    dropped_.insert(dropped_.end(), segment.dropped.begin(), segment.dropped.end());
    const int64_t end = segment.end;
    segment_ = {};
    segment_.first = segment_.end = end;
  }

  void write_report() const {
    const Json json{{"version", 1},
                    {"source", source_.digest().hex()},
                    {"samples", report_.num_samples},
                    {"tars", report_.num_tars},
                    {"bytes", report_.bytes_written},
                    {"transcoded", report_.num_transcoded},
                    {"resized", report_.num_resized},
                    {"dropped", report_.dropped}};
    io::write_atomic(out_ / "build.json", json_text(json, 1) + "\n");
  }

  detail::BuildSource& source_;
  fs::path out_;
  const TarOptions& options_;
  const Progress& progress_;
  detail::NearDuplicates duplicates_;
  std::vector<int64_t> hashed_;  // samples whose hashes duplicates_ keeps
  int64_t done_bytes_ = 0;
  int64_t num_segments_ = 0;
  Segment segment_;  // the open one
  std::optional<detail::TarWriter> tar_;
  std::vector<BadSample> dropped_;  // of finished segments
  TarReport report_;
};

}  // namespace

void detail::check_tar_options(const TarOptions& options) {
  check_options(options);
  static_cast<void>(Where::parse(options.where));
}

TarReport build_tars(const index::Index& index, const fs::path& out, const TarOptions& options,
                     const Progress& progress) {
  detail::check_tar_options(options);
  check_index(index);
  detail::IndexSource source(index, options);
  return detail::build_tars_of(source, out, options, progress);
}

TarReport detail::build_tars_of(BuildSource& source, const fs::path& out, const TarOptions& options,
                                const Progress& progress) {
  io::make_folders(out / "tars");
  io::make_folders(out / "build");
  const auto lock = io::FileLock::try_lock(out / "build.lock", "chiliad data build");
  if (!lock.has_value())
    throw Unavailable(out.string(), "another process builds there. Wait for it, or choose another folder");
  return TarBuild(source, out, options, progress).run();
}

std::vector<std::string> where_columns() {
  return detail::Where::columns();
}

}  // namespace chiliad::dataset
