#include "chiliad/dataset/detail/parquet_file.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "chiliad/base/error.h"

namespace chiliad::dataset::detail {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kBatchRows = 16;
constexpr const char* kLibrary = "libchiliad_parquet.so";

/// Beside the program, or where a build or an installation has libraries.
fs::path find_library() {
  if (const char* set = std::getenv("CHILIAD_PARQUET_LIBRARY"); set != nullptr) return set;
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const char* place : {"", "..", "../lib"}) {
    const fs::path path = folder / place / kLibrary;
    if (fs::exists(path, error)) return path;
  }
  return folder / kLibrary;
}

const ChiliadParquetFunctions* open_library(const fs::path& file) {
  const fs::path path = find_library();
  const auto refuse = [&](const std::string& what) {
    throw InvalidInput(file.string(),
                       fmt::format("parquet is read by {}, which {}. Run ./dev setup, then ./dev build, or "
                                   "name the library in CHILIAD_PARQUET_LIBRARY",
                                   path.string(), what));
  };
  std::error_code error;
  if (!fs::exists(path, error)) refuse("is not there");
  ::dlerror();
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) refuse(fmt::format("cannot be loaded: {}", ::dlerror()));
  void* entry = ::dlsym(library, "chiliad_parquet_functions");
  if (entry == nullptr) refuse("is another library");
  const auto* functions = reinterpret_cast<ChiliadParquetEntry>(entry)();  // NOLINT: as dlsym gives functions
  if (functions->version != kChiliadParquetVersion)
    refuse(fmt::format("is of version {}, expected {}", functions->version, kChiliadParquetVersion));
  return functions;
}

/// Each name and a zero, and one more.
std::string list_of(const std::string& name, std::initializer_list<const char*> usual) {
  std::string list;
  if (!name.empty()) return name + '\0' + '\0';
  for (const char* one : usual) list += std::string(one) + '\0';
  return list + '\0';
}

/// Arrow's texts may have several lines.
std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

std::string text_of(const ChiliadParquetBytes& bytes) {
  return bytes.size < 0 ? std::string() : std::string(bytes.data, static_cast<size_t>(bytes.size));
}

}  // namespace

ParquetFile::ParquetFile(fs::path path, const FieldNames& names)
    : path_(std::move(path)), functions_(open_library(path_)) {
  const std::string images = list_of(names.image, {"image", "img", "jpg", "png", "webp"});
  const std::string captions = list_of(names.caption, {"caption", "text", "prompt", "txt"});
  std::array<char, 4096> error{};
  reader_ = functions_->open(path_.c_str(), images.c_str(), captions.c_str(), kBatchRows, error.data(),
                             static_cast<int64_t>(error.size()));
  if (reader_ == nullptr)
    throw InvalidInput(path_.string(), fmt::format("cannot be read as parquet: {}", one_line(error.data())));
}

ParquetFile::~ParquetFile() {
  if (reader_ != nullptr) functions_->close(reader_);
}

int64_t ParquetFile::num_rows() const {
  return functions_->num_rows(reader_);
}

int64_t ParquetFile::group_end(int64_t row) const {
  return functions_->group_end(reader_, row);
}

std::string ParquetFile::read(int64_t row, ParquetRow& out) {
  CHILIAD_CHECK(0 <= row && row < num_rows(), "row {} of {}", row, num_rows());
  const int64_t next = std::exchange(next_, -1);
  ChiliadParquetRow read{};
  if ((next != row && functions_->seek(reader_, row) != 0) || functions_->next(reader_, &read) != 1)
    return one_line(functions_->error(reader_));
  next_ = row + 1;
  out.image.reset();
  if (read.image.size >= 0) {
    const auto* data = reinterpret_cast<const std::byte*>(read.image.data);
    out.image.emplace(data, data + read.image.size);
  }
  out.path = text_of(read.path);
  out.captions.clear();
  for (int64_t c = 0; c < read.num_captions; ++c) out.captions.push_back(text_of(read.captions[c]));
  return "";
}

}  // namespace chiliad::dataset::detail
