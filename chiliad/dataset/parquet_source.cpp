#include "chiliad/dataset/detail/parquet_source.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/image/image.h"
#include "chiliad/io/file.h"
#include "chiliad/text/byte_tokenizer.h"
#include "chiliad/text/stored_text.h"

namespace chiliad::dataset::detail {
namespace {

namespace fs = std::filesystem;

/// Over the end of the file: its footer names every page by place and size.
Digest tail_digest(const io::File& file) {
  constexpr int64_t kTailBytes = 64 << 10;
  std::vector<std::byte> bytes(static_cast<size_t>(std::min(kTailBytes, file.size())));
  file.read_at(file.size() - static_cast<int64_t>(bytes.size()), bytes);
  return Hasher().add_bytes(bytes).digest();
}

}  // namespace

ParquetSource::ParquetSource(std::vector<fs::path> files, const FieldNames& names, const TarOptions& options)
    : files_(std::move(files)), names_(names), options_(options), where_(Where::parse(options.where)) {
  Hasher hasher;
  hasher.add("parquet 1").add(names.image).add(names.caption);
  for (const fs::path& path : files_) {
    const ParquetFile parquet(path, names_);
    const io::File file = io::File::open_read(path);
    first_row_.push_back(first_row_.back() + parquet.num_rows());
    total_bytes_ += file.size();
    hasher.add(path.filename().string()).add(file.size()).add(parquet.num_rows()).add(tail_digest(file));
  }
  digest_ = hasher.digest();
}

size_t ParquetSource::file_of(int64_t sample) const {
  const auto after = std::upper_bound(first_row_.begin(), first_row_.end(), sample);
  return static_cast<size_t>(after - first_row_.begin() - 1);
}

std::string ParquetSource::key(int64_t sample) const {
  const size_t file = file_of(sample);
  return fmt::format("{}:{}", files_[file].filename().string(), sample - first_row_[file]);
}

ParquetSource::WaitingRow ParquetSource::read(int64_t sample) {
  WaitingRow waiting;
  const size_t file = file_of(sample);
  if (open_ == nullptr || open_number_ != file) {
    open_ = std::make_unique<ParquetFile>(files_[file], names_);
    open_number_ = file;
    bad_end_ = 0;
  }
  const int64_t row = sample - first_row_[file];
  if (row >= bad_end_) {
    const std::string problem = open_->read(row, waiting.row);
    if (problem.empty()) return waiting;
    bad_end_ = open_->group_end(row);
    bad_reason_ = fmt::format("the row group up to row {} cannot be read: {}", bad_end_ - 1, problem);
  }
  waiting.problem = bad_reason_;
  return waiting;
}

BuildSource::Window ParquetSource::open_window(int64_t first, int64_t max_samples, uint64_t max_bytes) {
  window_.clear();
  window_first_ = first;
  Window window{first, 0};
  while (window.end < num_samples() && window.end - first < max_samples && window.bytes < max_bytes) {
    window_.push_back(read(window.end));
    if (window_.back().row.image.has_value()) window.bytes += window_.back().row.image->size();
    ++window.end;
  }
  return window;
}

MadeSample ParquetSource::make(int64_t sample) const {
  const auto& [row, problem] = window_.at(static_cast<size_t>(sample - window_first_));
  MadeSample made;
  std::vector<std::string> captions;
  for (std::string caption : row.captions) {
    static_cast<void>(text::repair_utf8(caption));
    captions.emplace_back(text::trim(caption));
    if (captions.back().empty()) captions.pop_back();
  }
  if (!problem.empty()) {
    drop(made, "damaged", problem);
  } else if (!row.image.has_value()) {
    drop(made, "image",
         row.path.empty() ? "is null"
                          : fmt::format("has no bytes, only the path {}", row.path.substr(0, 200)));
  } else if (row.image->size() > kMaxPartBytes) {
    drop(made, "image", fmt::format("has {} bytes, expected at most {}", row.image->size(), kMaxPartBytes));
  } else if (captions.empty()) {
    drop(made, "caption", "has no caption");
  } else {
    add_row(*row.image, captions, made);
  }
  return made;
}

void ParquetSource::add_row(const std::vector<std::byte>& image, const std::vector<std::string>& captions,
                            MadeSample& made) const {
  const auto info = image::probe(image);
  if (!info) return drop(made, "image", image.empty() ? "has no bytes" : info.reason);
  index::Part part;
  part.length = image.size();
  part.image_flags = info.value->flags;
  part.width = static_cast<uint32_t>(info.value->width);
  part.height = static_cast<uint32_t>(info.value->height);
  Row row{static_cast<int64_t>(captions.size()), &part};
  for (const auto& caption : captions) row.caption_bytes += static_cast<int64_t>(caption.size());
  if (!where_.holds(row)) return drop(made, "where", "does not meet: " + options_.where);
  add_picture(image, options_, made);
  if (made.dropped.empty()) add_captions(captions, made);
}

}  // namespace chiliad::dataset::detail
