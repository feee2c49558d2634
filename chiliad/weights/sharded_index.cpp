#include "chiliad/weights/sharded_index.h"

#include <fmt/core.h>

#include <optional>
#include <regex>
#include <set>
#include <system_error>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/base/units.h"
#include "chiliad/weights/detail/strict_json.h"

namespace chiliad::weights {
namespace {

using detail::JsonPath;
using detail::JsonScalar;
using detail::quote_name;

constexpr int64_t kMaxIndexBytes = 64 * kMiB;
constexpr size_t kMaxDepth = 8;
constexpr size_t kMaxShardName = 255;

// Takes weight_map and metadata.total_size; what else there is in an index is of no use here.
class IndexReader : public detail::JsonHandler {
 public:
  explicit IndexReader(std::string place) : place_(std::move(place)) {}

  std::map<std::string, std::string> weight_map;
  std::optional<uint64_t> total_size;
  bool has_weight_map = false;

  void on_open(const JsonPath& path, bool is_object) override {
    if (path.empty() && !is_object) refuse("expected an object, got a list");
    if (path.empty() || path[0] != "weight_map") return;
    if (path.size() == 1 && is_object) {
      has_weight_map = true;
    } else {
      refuse("weight_map: expected tensor names and file names, got other content");
    }
  }
  void on_close(const JsonPath&) override {}
  void on_scalar(const JsonPath& path, const JsonScalar& value) override {
    if (path.empty()) refuse("expected an object, got a single value");
    if (path.size() == 2 && path[0] == "metadata" && path[1] == "total_size") {
      if (const auto* bytes = std::get_if<uint64_t>(&value)) total_size = *bytes;
    }
    if (path[0] != "weight_map") return;
    const auto* shard = std::get_if<std::string>(&value);
    if (path.size() != 2 || shard == nullptr)
      refuse("weight_map: expected tensor names and file names, got other content");
    weight_map.emplace(path[1], *shard);
  }

 private:
  [[noreturn]] void refuse(const std::string& message) const { throw CorruptData(place_, message); }

  std::string place_;
};

bool is_plain_file_name(const std::string& name) {
  const bool has_separator = name.find_first_of(std::string_view("/\\\0", 3)) != std::string::npos;
  return !name.empty() && name != "." && name != ".." && !has_separator;
}

SafetensorsFile open_shard(const std::filesystem::path& index_path, const std::string& shard) {
  if (!is_plain_file_name(shard)) {
    throw CorruptData(
        index_path.string(),
        fmt::format("weight_map: expected the name of a file beside the index, got {}", quote_name(shard)));
  }
  const std::filesystem::path path = index_path.parent_path() / shard;
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    throw CorruptData(index_path.string(),
                      fmt::format("weight_map: expected the shard {} beside the index, got no such "
                                  "file. Fetch it again",
                                  quote_name(shard)));
  }
  return SafetensorsFile::open(path);
}

[[noreturn]] void refuse_left_out(const std::filesystem::path& index_path, const std::string& listed,
                                  const std::string& left_out) {
  const std::string place = index_path.string();
  const std::filesystem::path path = index_path.parent_path() / left_out;
  std::error_code error;
  if (std::filesystem::is_regular_file(path, error)) {
    const SafetensorsFile shard = SafetensorsFile::open(path);
    if (!shard.tensors().empty()) {
      throw CorruptData(place, fmt::format("tensor {}: expected in the index for shard {}, got none",
                                           quote_name(shard.tensors()[0].name), quote_name(left_out)));
    }
  }
  throw CorruptData(
      place, fmt::format("weight_map: expected the shard {} too, for there is {}, got none of its tensors",
                         quote_name(left_out), quote_name(listed)));
}

// Shards named PREFIX-00001-of-00003.safetensors say how many they are: an index that leaves one out would
// load a part of a model as if it were all.
void check_series(const std::map<std::string, size_t>& listed, const std::filesystem::path& index_path) {
  static const std::regex kNumbered(R"(^(.{1,200})-([0-9]{5})-of-([0-9]{5})\.safetensors$)");
  std::set<std::string> seen;
  for (const auto& [shard, number] : listed) {
    std::smatch parts;
    if (shard.size() > kMaxShardName || !std::regex_match(shard, parts, kNumbered)) continue;
    if (!seen.insert(parts[1].str() + parts[3].str()).second) continue;
    const int total = std::stoi(parts[3]);
    for (int i = 1; i <= total; ++i) {
      const std::string sibling =
          fmt::format("{}-{:05}-of-{}.safetensors", parts[1].str(), i, parts[3].str());
      if (listed.count(sibling) == 0) refuse_left_out(index_path, shard, sibling);
    }
  }
}

}  // namespace

ShardedWeights ShardedWeights::open(const std::filesystem::path& index_path) {
  const std::string place = index_path.string();
  IndexReader index(place);
  detail::read_strict_json(io::read_text(index_path, kMaxIndexBytes), place, "index", kMaxDepth, index);
  if (!index.has_weight_map) throw CorruptData(place, "expected a weight_map, got none");

  ShardedWeights weights(index_path);
  std::map<std::string, size_t> shard_numbers;
  for (const auto& [tensor, shard] : index.weight_map) {
    const auto [known, is_new] = shard_numbers.emplace(shard, weights.shards_.size());
    if (is_new) weights.shards_.push_back(open_shard(index_path, shard));
    if (weights.shards_[known->second].find(tensor) == nullptr) {
      throw CorruptData(place, fmt::format("tensor {}: expected in shard {}, got a shard without it",
                                           quote_name(tensor), quote_name(shard)));
    }
    weights.shard_by_tensor_.emplace(tensor, known->second);
  }
  check_series(shard_numbers, index_path);
  weights.check_shards(index.total_size);
  return weights;
}

void ShardedWeights::check_shards(std::optional<uint64_t> total_size) {
  uint64_t bytes = 0;
  for (const SafetensorsFile& shard : shards_) {
    for (const TensorEntry& tensor : shard.tensors()) {
      bytes += static_cast<uint64_t>(tensor.num_bytes());
      if (shard_of(tensor.name) == &shard) continue;
      throw CorruptData(path_.string(),
                        fmt::format("tensor {}: expected in the index for shard {}, got none",
                                    quote_name(tensor.name), quote_name(shard.path().filename().string())));
    }
  }
  if (total_size && *total_size != bytes) {
    warnings_.push_back(fmt::format("{}: metadata.total_size: expected {} as in the shards, got {}",
                                    path_.string(), bytes, *total_size));
  }
}

std::vector<std::string> ShardedWeights::names() const {
  std::vector<std::string> names;
  for (const auto& [name, shard] : shard_by_tensor_) names.push_back(name);
  return names;
}

const SafetensorsFile* ShardedWeights::shard_of(std::string_view name) const {
  const auto found = shard_by_tensor_.find(name);
  return found == shard_by_tensor_.end() ? nullptr : &shards_[found->second];
}

const TensorEntry* ShardedWeights::find(std::string_view name) const {
  const SafetensorsFile* shard = shard_of(name);
  return shard == nullptr ? nullptr : shard->find(name);
}

void ShardedWeights::read(std::string_view name, std::span<std::byte> out) const {
  const SafetensorsFile* shard = shard_of(name);
  if (shard == nullptr) {
    throw CorruptData(path_.string(), fmt::format("expected a tensor {}, got none", quote_name(name)));
  }
  shard->read(name, out);
}

}  // namespace chiliad::weights
