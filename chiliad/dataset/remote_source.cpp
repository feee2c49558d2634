#include "chiliad/dataset/detail/remote_source.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>

#include "chiliad/base/error.h"
#include "chiliad/base/log.h"
#include "chiliad/io/file.h"

namespace chiliad::dataset::detail {
namespace {

namespace fs = std::filesystem;
constexpr Nanoseconds kAttempt = std::chrono::minutes(5);
constexpr int64_t kRequestBytes = 32 << 20;

bool is_hidden(const std::string& name) {
  return name.starts_with('.') || name.find("/.") != std::string::npos;
}

}  // namespace

SourceListing list_objects(store::Store& source, const std::vector<std::string>& names) {
  SourceListing listing;
  listing.root = source.url();
  const auto add = [&](const store::ObjectInfo& info) {
    if (!is_hidden(info.name)) add_source_file(listing, {info.name, info.size, info.mtime_ns});
  };
  for (const std::string& name : names) add(source.stat(name, kAttempt));
  if (!names.empty()) return sorted(std::move(listing));
  std::string next;
  do {
    const store::ListPage page = source.list(next, kAttempt);
    for (const store::ObjectInfo& info : page.objects) add(info);
    next = page.next;
  } while (!next.empty());
  return sorted(std::move(listing));
}

std::string detect_remote_layout(const SourceListing& listing) {
  if (!listing.images.empty() && !listing.tars.empty()) return detect_layout(listing);  // says what to do
  if (!listing.tars.empty()) return "webdataset";
  if (!listing.images.empty()) {
    log_warn(
        "{}: single pictures cost a request each: build tars of them (chiliad data build) and put those "
        "into the store",
        listing.root.string());
    return "image_text";
  }
  if (!listing.lines.empty()) return "jsonl";
  if (!listing.texts.empty()) return "text";
  throw InvalidInput(listing.root.string(),
                     "holds no sample: expected *.tar, *.jsonl, *.txt, or pictures with .txt captions beside "
                     "them");
}

Staging::Staging(store::Store& source, fs::path folder) : source_(source), folder_(std::move(folder)) {
  io::remove_tree(folder_);
  io::make_folders(folder_);
}

Staging::~Staging() {
  try {
    clear();
  } catch (const std::exception& error) {
    log_warn("{}", error.what());
  }
}

void Staging::clear() {
  io::remove_tree(folder_);
}

void Staging::fetch(const std::vector<index::SourceFile>& files) {
  for (const index::SourceFile& file : files) fetch(file);
}

void Staging::fetch(const index::SourceFile& file) {
  const fs::path path = folder_ / file.path;
  io::make_folders(path.parent_path());
  io::File copy = io::File::create(path);
  std::vector<std::byte> bytes(static_cast<size_t>(std::min(kRequestBytes, file.size)));
  for (int64_t at = 0; at < file.size; at += kRequestBytes) {
    const auto part = std::span(bytes).first(static_cast<size_t>(std::min(kRequestBytes, file.size - at)));
    const int64_t got = source_.read(file.path, at, part, kAttempt);
    if (got == static_cast<int64_t>(part.size())) {
      copy.write(part);
      continue;
    }
    throw Unavailable(source_.url() + "/" + file.path,
                      fmt::format("ended at byte {}, listed with {}: it is being written. Index again when "
                                  "nothing writes there",
                                  at + got, file.size));
  }
  copy.close();
  const store::ObjectInfo after = source_.stat(file.path, kAttempt);
  if (after.size != file.size) {
    throw Unavailable(source_.url() + "/" + file.path,
                      "changed while it was indexed. Index again when nothing writes there");
  }
  constexpr int64_t kSecond = 1'000'000'000;
  const timespec time{file.mtime_ns / kSecond, file.mtime_ns % kSecond};
  const timespec times[2]{time, time};
  if (::utimensat(AT_FDCWD, path.c_str(), times, 0) != 0)
    throw Unavailable(path.string(), "its time cannot be set. Choose another folder for the index");
}

}  // namespace chiliad::dataset::detail
