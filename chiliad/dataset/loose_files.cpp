#include "chiliad/dataset/detail/loose_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>

#include "chiliad/base/error.h"
#include "chiliad/dataset/detail/captions.h"
#include "chiliad/io/file.h"

namespace chiliad::dataset::detail {
namespace {

namespace fs = std::filesystem;
using index::SourceFile;

void add_file(SourceListing& listing, const fs::path& path) {
  const std::string relative = path.lexically_relative(listing.root).string();
  const std::string extension = extension_of(path.filename().string());
  std::vector<SourceFile>* list = nullptr;
  if (media_of(extension) == index::MediaType::kImage) list = &listing.images;
  if (extension == "txt") list = &listing.texts;
  if (extension == "tar") list = &listing.tars;
  if (extension == "jsonl") list = &listing.lines;
  if (list == nullptr) return;
  const auto stamp = io::stat_file(path);
  if (stamp.has_value()) list->push_back({relative, stamp->size, stamp->mtime_ns});
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

}  // namespace

SourceListing list_source(const fs::path& source) {
  std::error_code error;
  const fs::path absolute = fs::canonical(source, error);
  if (error) throw InvalidInput(source.string(), fmt::format("cannot open: {}", error.message()));
  SourceListing listing;
  if (fs::is_directory(absolute)) {
    listing.root = absolute;
    walk_folder(listing);
  } else {
    listing.root = absolute.parent_path();
    add_file(listing, absolute);
    if (listing.tars.empty() && listing.lines.empty()) {
      throw InvalidInput(source.string(),
                         "expected a folder, a .tar or a .jsonl file. Name the folder that holds the data");
    }
  }
  sort_by_path(listing.images);
  sort_by_path(listing.texts);
  sort_by_path(listing.tars);
  sort_by_path(listing.lines);
  return listing;
}

std::string detect_layout(const SourceListing& listing) {
  if (listing.images.empty() && listing.tars.empty()) {
    if (!listing.lines.empty()) return "jsonl";
    if (!listing.texts.empty()) return "text";
    throw InvalidInput(
        listing.root.string(),
        "holds no sample: expected *.tar, pictures (png, jpg, webp) with .txt captions beside them, "
        "*.jsonl, or *.txt");
  }
  if (!listing.images.empty() && !listing.tars.empty()) {
    throw InvalidInput(
        listing.root.string(),
        fmt::format("holds {} pictures and {} tars: expected one kind. Choose a layout: webdataset, "
                    "image_text or tuxpaint",
                    listing.images.size(), listing.tars.size()));
  }
  if (!listing.tars.empty()) return "webdataset";
  return any_tuxpaint_text(listing) ? "tuxpaint" : "image_text";
}

std::vector<ShardDraft> draft_loose_shards(const SourceListing& listing, index::MediaType text_media,
                                           int64_t shard_bytes) {
  std::unordered_map<std::string, const SourceFile*> text_of;
  for (const SourceFile& text : listing.texts) text_of.emplace(stem_of(text.path), &text);
  std::unordered_map<std::string, int> images_of_stem;
  for (const SourceFile& image : listing.images) ++images_of_stem[stem_of(image.path)];

  std::vector<ShardDraft> shards;
  int64_t bytes = 0;
  for (const SourceFile& image : listing.images) {
    if (shards.empty() || bytes >= shard_bytes) {
      shards.emplace_back();
      bytes = 0;
    }
    ShardDraft& shard = shards.back();
    const std::string stem = stem_of(image.path);
    SampleDraft sample;
    sample.key = images_of_stem[stem] == 1 ? stem : image.path;
    const auto add_part = [&](const SourceFile& file, index::MediaType media, bool is_caption) {
      sample.parts.push_back({static_cast<uint32_t>(shard.files.size()), 0, static_cast<uint64_t>(file.size),
                              media, is_caption});
      shard.files.push_back(file);
      bytes += file.size;
    };
    add_part(image, index::MediaType::kImage, false);
    const auto text = text_of.find(stem);
    if (text != text_of.end()) add_part(*text->second, text_media, true);
    shard.samples.push_back(std::move(sample));
  }
  return shards;
}

}  // namespace chiliad::dataset::detail
