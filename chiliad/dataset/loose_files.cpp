#include "chiliad/dataset/detail/loose_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <iterator>
#include <unordered_map>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/base/log.h"
#include "chiliad/dataset/detail/captions.h"
#include "chiliad/dataset/detail/record_shards.h"
#include "chiliad/io/file.h"

namespace chiliad::dataset::detail {
namespace {

namespace fs = std::filesystem;
using index::SourceFile;

}  // namespace

void add_source_file(SourceListing& listing, SourceFile file) {
  const std::string name = file.path.substr(file.path.rfind('/') + 1);
  const std::string extension = extension_of(name);
  std::vector<SourceFile>* list = nullptr;
  if (media_of(extension) == index::MediaType::kImage) list = &listing.images;
  if (extension == "txt") list = &listing.texts;
  if (extension == "caption") list = &listing.captions;
  if (extension == "tar") list = &listing.tars;
  if (extension == "jsonl") list = &listing.lines;
  if (extension == "json") list = &listing.lists;
  if (name == "metadata.jsonl" || name == "metadata.csv") list = &listing.tables;
  if (list != nullptr) list->push_back(std::move(file));
}

namespace {

void add_file(SourceListing& listing, const fs::path& path) {
  const auto stamp = io::stat_file(path);
  if (!stamp.has_value()) return;
  add_source_file(listing, {path.lexically_relative(listing.root).string(), stamp->size, stamp->mtime_ns});
}

void sort_by_path(std::vector<SourceFile>& files) {
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
}

void walk_folder(SourceListing& listing) {
  try {
    for (auto it = fs::recursive_directory_iterator(listing.root); it != fs::recursive_directory_iterator();
         ++it) {
      const bool hidden = it->path().filename().string().starts_with('.');
      if (it->is_directory()) {
        if (hidden) it.disable_recursion_pending();
      } else if (!hidden && it->is_regular_file()) {
        add_file(listing, it->path());
      }
    }
  } catch (const fs::filesystem_error& error) {
    throw InvalidInput(error.path1().string(),
                       fmt::format("cannot list the folder: {}", error.code().message()));
  }
}

std::string stem_of(const std::string& path) {
  return path.substr(0, path.rfind('.'));
}

/// Looks at the first caption files only: a folder is of one kind.
bool any_tuxpaint_text(const SourceListing& listing) {
  constexpr size_t kLookAt = 64;
  for (size_t i = 0; i < std::min(kLookAt, listing.texts.size()); ++i) {
    if (listing.texts[i].size > static_cast<int64_t>(kMaxCaptionBytes)) continue;
    const auto path = listing.root / listing.texts[i].path;
    if (looks_like_tuxpaint(io::read_text(path, kMaxCaptionBytes))) return true;
  }
  return false;
}

/// The deepest folder that holds both.
fs::path common_folder(const fs::path& a, const fs::path& b) {
  fs::path common;
  auto in_b = b.begin();
  for (auto in_a = a.begin(); in_a != a.end() && in_b != b.end() && *in_a == *in_b; ++in_a, ++in_b)
    common /= *in_a;
  return common;
}

/// One file that is a data set or names the parts of one.
void add_only_file(SourceListing& listing, const fs::path& path) {
  const std::string extension = extension_of(path.filename().string());
  if (extension == "tar" || extension == "jsonl" || extension == "json") add_file(listing, path);
  if (extension == "csv" || extension == "tsv") {
    const auto stamp = io::stat_file(path);
    listing.tables.assign({{path.lexically_relative(listing.root).string(), stamp->size, stamp->mtime_ns}});
  }
  if (!listing.tars.empty() || !listing.lines.empty() || !listing.lists.empty() || !listing.tables.empty())
    return;
  if (extension == "parquet") {
    throw InvalidInput(path.string(),
                       "parquet is imported, not read in place. Make tars of it: chiliad data build --from "
                       "FILE --out DIR");
  }
  throw InvalidInput(
      path.string(),
      "expected a folder, or a file .tar, .json, .jsonl, .csv or .tsv, or a mixture .yaml. Name the folder "
      "that holds the data");
}

fs::path existing(const fs::path& path) {
  std::error_code error;
  fs::path absolute = fs::canonical(path, error);
  if (error) throw InvalidInput(path.string(), fmt::format("cannot open: {}", error.message()));
  return absolute;
}

/// Where the first record of JSON or JSON Lines names pictures or conversations; empty else.
std::string records_in(const SourceListing& listing) {
  const auto& files = listing.lists.empty() ? listing.lines : listing.lists;
  return files.empty() ? std::string() : guess_records(listing.root / files.front().path, {});
}

std::string detect_without_tars(const SourceListing& listing) {
  if (!listing.tables.empty()) return "table";
  if (listing.images.empty()) {
    if (!listing.lines.empty() || (!listing.lists.empty() && listing.texts.empty())) {
      const std::string records = records_in(listing);
      if (records == "conversations" || records == "table") return records;
    }
    if (!listing.lines.empty()) return "jsonl";
    return listing.texts.empty() ? "" : "text";
  }
  if (listing.texts.empty() && listing.captions.empty() && records_in(listing) == "conversations")
    return "conversations";
  const auto is_kohya = [](const SourceFile& image) { return kohya_repeats(image.path).has_value(); };
  if (std::all_of(listing.images.begin(), listing.images.end(), is_kohya)) {
    log_warn(
        "{}: all pictures lie in folders N_name: each is taken N times, as kohya's trainer does; --layout "
        "image_text takes it once",
        listing.root.string());
    return "kohya";
  }
  return any_tuxpaint_text(listing) ? "tuxpaint" : "image_text";
}

bool is_mixture(const fs::path& path) {
  const std::string extension = extension_of(path.filename().string());
  if (extension == "yaml" || extension == "yml") return true;
  return extension == "json" && guess_records(path, {}) == "mixture";
}

fs::path file_of(const spec::MixtureEntry& entry, const fs::path& folder) {
  const fs::path path = (folder / entry.path).lexically_normal();
  const std::string extension = extension_of(path.filename().string());
  if (extension != "json" && extension != "jsonl")
    throw InvalidInput(entry.place, fmt::format("json_path: expected a .json or .jsonl, got {}", entry.path));
  std::error_code error;
  const fs::path file = fs::canonical(path, error);
  if (!error && fs::is_regular_file(file, error)) return file;
  throw InvalidInput(
      entry.place,
      fmt::format("json_path: {} is missing. Paths that are not absolute are from the mixture's folder",
                  path.string()));
}

/// The files of a mixture, their root the deepest folder that holds them and the pictures.
void add_mixture(SourceListing& listing, const fs::path& mixture) {
  constexpr int64_t kMaxBytes = 16 << 20;
  std::vector<std::pair<fs::path, spec::Sampling>> files;
  listing.root = listing.images_folder;
  for (const auto& entry : spec::parse_mixture(io::read_text(mixture, kMaxBytes), mixture.string())) {
    files.emplace_back(file_of(entry, mixture.parent_path()), entry.sampling);
    const fs::path folder = files.back().first.parent_path();
    listing.root = listing.root.empty() ? folder : common_folder(listing.root, folder);
  }
  for (const auto& [path, sampling] : files) {
    const auto stamp = io::stat_file(path);
    if (!stamp.has_value()) throw InvalidInput(path.string(), "there is no such file");
    listing.mixture.push_back(
        {{path.lexically_relative(listing.root).string(), stamp->size, stamp->mtime_ns}, sampling});
  }
}

/// Pairs pictures with captions; cuts shards.
class LooseShards {
 public:
  LooseShards(const SourceListing& listing, index::MediaType text_media, int64_t shard_bytes)
      : text_media_(text_media), shard_bytes_(shard_bytes) {
    for (const SourceFile& text : listing.texts) texts_.emplace(stem_of(text.path), &text);
    for (const SourceFile& text : listing.captions) captions_.emplace(stem_of(text.path), &text);
    for (const SourceFile& image : listing.images) ++images_of_stem_[stem_of(image.path)];
  }

  void add(const SourceFile& image, int repeats) {
    if (shards.empty() || bytes_ >= shard_bytes_) {
      shards.emplace_back();
      bytes_ = 0;
    }
    const std::string stem = stem_of(image.path);
    SampleDraft sample;
    sample.key = images_of_stem_[stem] == 1 ? stem : image.path;
    sample.parts.push_back(part_of(image, index::MediaType::kImage, false));
    const auto text = texts_.find(stem);
    const auto caption = captions_.find(stem);
    if (text != texts_.end()) {
      sample.parts.push_back(part_of(*text->second, text_media_, true));
    } else if (caption != captions_.end()) {
      sample.parts.push_back(part_of(*caption->second, index::MediaType::kText, true));
    }
    const std::string key = sample.key;
    for (int i = 1; i <= repeats; ++i) {
      if (i > 1) sample.key = fmt::format("{}#{}", key, i);
      shards.back().samples.push_back(sample);
    }
  }

  std::vector<ShardDraft> shards;

 private:
  PartDraft part_of(const SourceFile& file, index::MediaType media, bool is_caption) {
    ShardDraft& shard = shards.back();
    const auto number = static_cast<uint32_t>(shard.files.size());
    shard.files.push_back(file);
    bytes_ += file.size;
    return {.file = number,
            .offset = 0,
            .length = static_cast<uint64_t>(file.size),
            .media = media,
            .is_caption = is_caption};
  }

  index::MediaType text_media_;
  int64_t shard_bytes_;
  std::unordered_map<std::string, const SourceFile*> texts_;
  std::unordered_map<std::string, const SourceFile*> captions_;
  std::unordered_map<std::string, int> images_of_stem_;
  int64_t bytes_ = 0;  // of the last shard
};

/// A metadata.jsonl whose first record is no row of a table holds documents or conversations.
void sort_out_tables(SourceListing& listing) {
  const auto is_lines = [&](const SourceFile& file) {
    if (!file.path.ends_with(".jsonl")) return false;
    const std::string records = guess_records(listing.root / file.path, {});
    return records == "jsonl" || records == "conversations";
  };
  const auto first =
      std::stable_partition(listing.tables.begin(), listing.tables.end(), std::not_fn(is_lines));
  std::move(first, listing.tables.end(), std::back_inserter(listing.lines));
  listing.tables.erase(first, listing.tables.end());
}

}  // namespace

SourceListing list_source(const fs::path& source, const fs::path& images) {
  const fs::path absolute = existing(source);
  SourceListing listing;
  if (fs::is_directory(absolute)) {
    listing.root = absolute;
    walk_folder(listing);
    if (!images.empty())
      throw InvalidInput("images", "is for a source that is one .json, .jsonl, .csv or .tsv file");
  } else {
    listing.root = absolute.parent_path();
    if (!images.empty()) {
      listing.images_folder = existing(images);
      listing.root = common_folder(listing.root, listing.images_folder);
    }
    if (is_mixture(absolute)) {
      add_mixture(listing, absolute);
      return listing;
    }
    add_only_file(listing, absolute);
  }
  sort_out_tables(listing);
  return sorted(std::move(listing));
}

SourceListing sorted(SourceListing listing) {
  for (auto* files : {&listing.images, &listing.texts, &listing.captions, &listing.tars, &listing.lines,
                      &listing.lists, &listing.tables})
    sort_by_path(*files);
  return listing;
}

std::string detect_layout(const SourceListing& listing) {
  if (!listing.mixture.empty()) return "conversations";
  if (!listing.images.empty() && !listing.tars.empty()) {
    throw InvalidInput(
        listing.root.string(),
        fmt::format("holds {} pictures and {} tars: expected one kind. Choose a layout: webdataset, "
                    "image_text or tuxpaint",
                    listing.images.size(), listing.tars.size()));
  }
  if (!listing.tars.empty()) return "webdataset";
  const std::string layout = detect_without_tars(listing);
  if (!layout.empty()) return layout;
  if (!listing.lists.empty()) {
    throw InvalidInput(
        (listing.root / listing.lists.front().path).string(),
        "its first record has neither `conversations` nor the name of a picture. Name the fields with "
        "--layout table --image-key and --caption-key");
  }
  throw InvalidInput(
      listing.root.string(),
      "holds no sample: expected *.tar, pictures (png, jpg, webp) with .txt captions beside them or "
      "named by metadata.jsonl, *.jsonl, *.json or *.txt");
}

std::vector<ShardDraft> draft_loose_shards(const SourceListing& listing, index::MediaType text_media,
                                           int64_t shard_bytes) {
  LooseShards drafts(listing, text_media, shard_bytes);
  for (const SourceFile& image : listing.images) drafts.add(image, 1);
  return std::move(drafts.shards);
}

std::optional<int> kohya_repeats(const std::string& path) {
  constexpr int kMost = 10'000;
  const size_t slash = path.find('/');
  if (slash == std::string::npos || path.find('/', slash + 1) != std::string::npos) return std::nullopt;
  int repeats = 0;
  const auto [end, problem] = std::from_chars(path.data(), path.data() + slash, repeats);
  if (problem != std::errc() || end == path.data() + slash || *end != '_') return std::nullopt;
  if (path.front() == '0' || repeats < 1 || repeats > kMost) return std::nullopt;
  return repeats;
}

std::vector<ShardDraft> draft_kohya_shards(const SourceListing& listing, int64_t shard_bytes,
                                           std::vector<BadSample>& unnamed) {
  LooseShards drafts(listing, index::MediaType::kText, shard_bytes);
  for (const SourceFile& image : listing.images) {
    const auto repeats = kohya_repeats(image.path);
    if (repeats.has_value()) {
      drafts.add(image, *repeats);
    } else {
      unnamed.push_back({image.path, image.path, "expected a picture right in a folder N_name, N from 1"});
    }
  }
  return std::move(drafts.shards);
}

}  // namespace chiliad::dataset::detail
