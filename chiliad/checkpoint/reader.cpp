#include "chiliad/checkpoint/reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/base/hash.h"
#include "chiliad/base/log.h"
#include "chiliad/checkpoint/detail/block_file.h"
#include "chiliad/checkpoint/detail/box_copy.h"
#include "chiliad/checkpoint/detail/manifest.h"
#include "chiliad/checkpoint/detail/verify_file.h"
#include "chiliad/io/file.h"

namespace chiliad::checkpoint {

namespace fs = std::filesystem;

struct Checkpoint::Data {
  fs::path path;
  detail::Manifest manifest;
  std::vector<Tensor> tensors;
  std::map<std::pair<std::string, std::string>, size_t> positions;
  std::string state;
};

namespace {

constexpr int64_t kMaxCommitBytes = 4096;

/// COMMIT, the manifest and the folder's name must tell the same.
detail::Manifest read_manifest(const fs::path& path, const detail::FolderName& name) {
  const fs::path commit_path = path / "COMMIT";
  const fs::path manifest_path = path / "manifest.json";
  const detail::CommitRecord record =
      detail::parse_commit(commit_path.string(), detail::read_stored_text(commit_path, kMaxCommitBytes));
  if (record.step != name.step || record.generation != name.generation) {
    throw CorruptData(commit_path.string(), fmt::format("belongs to step {} generation {}, the folder is {}",
                                                        record.step, record.generation, name.to_string()));
  }
  const std::string text = detail::read_stored_text(manifest_path, detail::kMaxManifestBytes);
  if (hash128(std::as_bytes(std::span(text))) != record.manifest) {
    throw CorruptData(manifest_path.string(), "does not have the digest that COMMIT names");
  }
  detail::Manifest manifest = detail::parse_manifest(manifest_path.string(), text);
  if (manifest.step != record.step || manifest.generation != record.generation ||
      static_cast<int64_t>(manifest.files.size()) != record.num_files) {
    throw CorruptData(manifest_path.string(), "step, generation or number of files differ from COMMIT");
  }
  return manifest;
}

std::string read_state(const fs::path& path, const detail::Manifest& manifest) {
  for (const detail::StoredFile& file : manifest.files) {
    if (file.path != "state.json") continue;
    if (file.bytes > detail::kMaxStateBytes) throw CorruptData((path / file.path).string(), "is too large");
    detail::BlockReader reader(path, file);
    std::string state(static_cast<size_t>(file.bytes), '\0');
    reader.read(0, std::as_writable_bytes(std::span(state)));
    return state;
  }
  throw CorruptData((path / "manifest.json").string(), "lists no state.json");
}

/// Files that the manifest does not list; they are never read, but somebody should know.
std::vector<std::string> unexpected_files(const fs::path& path, const detail::Manifest& manifest) {
  std::set<std::string> expected{"COMMIT", "manifest.json"};
  for (const detail::StoredFile& file : manifest.files) expected.insert(file.path);
  std::vector<std::string> unexpected;
  std::error_code error;
  for (fs::recursive_directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    if (it->is_directory(error)) continue;
    std::string name = it->path().lexically_relative(path).string();
    if (!expected.contains(name)) unexpected.push_back(std::move(name));
  }
  if (error) throw Unavailable(path.string(), "cannot be listed: " + error.message());
  std::sort(unexpected.begin(), unexpected.end());
  return unexpected;
}

void verify_files(const fs::path& path, const detail::Manifest& manifest) {
  for (size_t file = 0; file < manifest.files.size(); ++file) detail::verify_file(path, manifest, file);
}

}  // namespace

Checkpoint::Checkpoint(std::unique_ptr<Data> data) : data_(std::move(data)) {}
Checkpoint::Checkpoint(Checkpoint&&) noexcept = default;
Checkpoint& Checkpoint::operator=(Checkpoint&&) noexcept = default;
Checkpoint::~Checkpoint() = default;

Checkpoint Checkpoint::open(const fs::path& path) {
  const fs::path plain = path.has_filename() ? path : path.parent_path();
  const auto name = detail::parse_folder_name(plain.filename().string());
  if (!name.has_value())
    throw InvalidInput(plain.string(), "is no checkpoint: expected a folder named step-N.gG");
  if (!io::stat_file(plain).has_value()) throw InvalidInput(plain.string(), "does not exist");
  if (!io::stat_file(plain / "COMMIT").has_value()) {
    throw InvalidInput(plain.string(), "was never committed: it has no COMMIT. Use another step");
  }
  auto data = std::make_unique<Data>();
  data->path = plain;
  data->manifest = read_manifest(plain, *name);
  for (const detail::StoredFile& file : data->manifest.files) (void)detail::BlockReader(plain, file);
  data->state = read_state(plain, data->manifest);
  for (const detail::StoredTensor& stored : data->manifest.tensors) {
    data->positions.emplace(std::pair(stored.section, stored.name), data->tensors.size());
    data->tensors.push_back({stored.section, stored.name, stored.dtype, stored.shape, stored.digest()});
  }
  return Checkpoint(std::move(data));
}

int64_t Checkpoint::step() const {
  return data_->manifest.step;
}
int64_t Checkpoint::generation() const {
  return data_->manifest.generation;
}
int Checkpoint::num_ranks() const {
  return data_->manifest.num_ranks;
}
const fs::path& Checkpoint::path() const {
  return data_->path;
}
const std::vector<Checkpoint::Tensor>& Checkpoint::tensors() const {
  return data_->tensors;
}
const std::string& Checkpoint::state() const {
  return data_->state;
}
const std::string& Checkpoint::config() const {
  return data_->manifest.config;
}

const Checkpoint::Tensor* Checkpoint::find(const std::string& section, const std::string& name) const {
  const auto found = data_->positions.find({section, name});
  return found == data_->positions.end() ? nullptr : &data_->tensors[found->second];
}

void Checkpoint::read(const Tensor& tensor, const Box& box, std::span<std::byte> out) const {
  const auto found = data_->positions.find({tensor.section, tensor.name});
  CHILIAD_CHECK(found != data_->positions.end(), "{} has no {}/{}", path().string(), tensor.section,
                tensor.name);
  const detail::StoredTensor& stored = data_->manifest.tensors[found->second];
  CHILIAD_CHECK(box.inside(stored.shape), "box {} outside of {}", box.to_string(), stored.shape.to_string());
  const int64_t element_bytes = dtype_bytes(stored.dtype);
  CHILIAD_CHECK_EQ(static_cast<int64_t>(out.size()), box.count() * element_bytes);
  if (out.empty()) return;
  for (const detail::StoredBox& source : stored.boxes) {
    if (source.box.count() == 0) continue;
    const auto common = source.box.intersect(box);
    if (!common.has_value()) continue;
    detail::BlockReader reader(path(), data_->manifest.files[source.file]);
    detail::for_each_piece(source.box, box, *common, [&](int64_t from, int64_t to, int64_t count) {
      reader.read(source.at + from * element_bytes, out.subspan(static_cast<size_t>(to * element_bytes),
                                                                static_cast<size_t>(count * element_bytes)));
    });
  }
}

void Checkpoint::verify() const {
  verify_files(path(), data_->manifest);
  const auto unexpected = unexpected_files(path(), data_->manifest);
  if (unexpected.empty()) return;
  throw CorruptData((path() / unexpected[0]).string(),
                    "is not in the manifest. Remove it if nobody needs it");
}

int64_t Checkpoint::num_bytes() const {
  int64_t sum = 0;
  for (const detail::StoredFile& file : data_->manifest.files) sum += file.bytes;
  return sum;
}

std::vector<Listing> list(const fs::path& folder) {
  std::vector<Listing> found;
  for (const detail::FolderName& name : detail::checkpoint_folders(folder)) {
    Listing listing;
    listing.path = folder / name.to_string();
    listing.step = name.step;
    listing.generation = name.generation;
    listing.committed = io::stat_file(listing.path / "COMMIT").has_value();
    if (!listing.committed) {
      listing.problem = "not committed";
    } else {
      try {
        (void)Checkpoint::open(listing.path);
      } catch (const Error& error) {
        listing.problem = error.what();
      }
    }
    found.push_back(std::move(listing));
  }
  return found;
}

std::optional<Checkpoint> newest_good(
    const fs::path& folder, const std::function<void(const std::string&, const std::string&)>& report) {
  for (const detail::FolderName& name : detail::checkpoint_folders(folder)) {
    const fs::path path = folder / name.to_string();
    if (!io::stat_file(path / "COMMIT").has_value()) continue;
    try {
      Checkpoint checkpoint = Checkpoint::open(path);
      verify_files(path, checkpoint.data_->manifest);
      for (const std::string& extra : unexpected_files(path, checkpoint.data_->manifest)) {
        report((path / extra).string(), "is not in the manifest and is ignored");
      }
      return checkpoint;
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::kInternal) throw;
      report(path.string(), error.what());
    }
  }
  return std::nullopt;
}

Checkpoint open_newest(const std::filesystem::path& given) {
  namespace fs = std::filesystem;
  const std::string path = given.string();
  if (!fs::is_directory(given)) throw InvalidInput(path, "expected a checkpoint folder or a run directory");
  if (fs::exists(given / "manifest.json")) return Checkpoint::open(given);
  const fs::path folder = fs::is_directory(given / "checkpoints") ? given / "checkpoints" : given;
  int damaged = 0;
  auto newest = newest_good(folder, [&](const std::string& where, const std::string& why) {
    log_warn("{} cannot be used: {}", where, why);
    ++damaged;
  });
  if (!newest.has_value() && damaged > 0) {
    throw CorruptData(path, fmt::format("all {} checkpoints are damaged. Restore one from a copy", damaged));
  }
  if (!newest.has_value())
    throw InvalidInput(path, "holds no usable checkpoint. Give a step-N.gG folder or a run directory");
  return std::move(*newest);
}

}  // namespace chiliad::checkpoint
