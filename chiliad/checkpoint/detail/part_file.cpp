#include "chiliad/checkpoint/detail/part_file.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/base/json_text.h"
#include "chiliad/checkpoint/detail/block_file.h"
#include "chiliad/checkpoint/detail/fields.h"
#include "chiliad/weights/safetensors.h"

namespace chiliad::checkpoint::detail {
namespace {

constexpr int64_t kDataAlignment = 4096;  // direct I/O

bool is_whole(const OwnedBox& box) {
  return box.box.size == box.shape;
}

/// What the reader of torch.distributed.checkpoint needs to place the boxes. It wants an entry for every
/// tensor of a file or for none.
weights::Metadata sharding_metadata(std::span<const OwnedBox* const> boxes,
                                    const std::vector<std::string>& names) {
  weights::Metadata metadata{{"format", "pt"}};
  if (std::all_of(boxes.begin(), boxes.end(), [](const OwnedBox* box) { return is_whole(*box); }))
    return metadata;
  Json sharding = Json::object();
  for (size_t i = 0; i < boxes.size(); ++i)
    sharding[names[i]] = {{"saved_offsets", boxes[i]->box.offset.sizes()}};
  metadata["DCP_VERSION"] = "1.0";
  metadata["DCP_SHARDING_INFO"] = json_text(sharding);
  return metadata;
}

/// Wide elements first, so that each tensor is aligned to its elements; then by name.
std::vector<size_t> storage_order(std::span<const OwnedBox* const> boxes,
                                  const std::vector<std::string>& names) {
  std::vector<size_t> order(boxes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const auto key = [&](size_t i) {
      return std::pair(-dtype_bytes(boxes[i]->dtype), std::string_view(names[i]));
    };
    return key(a) < key(b);
  });
  return order;
}

std::vector<std::string> entry_names(std::span<const OwnedBox* const> boxes) {
  std::vector<std::string> names;
  std::map<std::string, int64_t> seen;
  for (const OwnedBox* box : boxes) names.push_back(entry_name(box->name, seen[box->name]++));
  return names;
}

}  // namespace

std::string entry_name(const std::string& tensor, int64_t earlier) {
  return earlier == 0 ? tensor : fmt::format("{}#{}", tensor, earlier + 1);
}

std::string part_path(const std::string& section, int rank) {
  return fmt::format("{}/rank-{:05}.safetensors", section, rank);
}

WrittenPart write_part(const std::filesystem::path& root, const std::string& path,
                       std::span<const OwnedBox* const> boxes) {
  const std::vector<std::string> names = entry_names(boxes);
  const std::vector<size_t> order = storage_order(boxes, names);
  std::vector<weights::TensorSpec> specs;
  for (const size_t i : order) specs.push_back({names[i], boxes[i]->dtype, boxes[i]->box.size});
  const weights::SafetensorsLayout layout =
      weights::plan_safetensors(specs, sharding_metadata(boxes, names), kDataAlignment);

  io::make_folders((root / path).parent_path());
  BlockWriter writer(root, path);
  writer.write(layout.header);
  WrittenPart written;
  written.at.resize(boxes.size());
  for (size_t k = 0; k < order.size(); ++k) {
    const weights::TensorEntry& entry = layout.tensors[k];
    written.at[order[k]] = entry.begin;
    writer.write({boxes[order[k]]->data, static_cast<size_t>(entry.num_bytes())});
  }
  written.file = writer.finish();
  CHILIAD_CHECK_EQ(written.file.bytes, layout.file_bytes);
  return written;
}

}  // namespace chiliad::checkpoint::detail
