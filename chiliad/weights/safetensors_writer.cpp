#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <unordered_set>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/base/json_text.h"
#include "chiliad/weights/detail/header.h"
#include "chiliad/weights/detail/strict_json.h"
#include "chiliad/weights/safetensors.h"

namespace chiliad::weights {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kLengthBytes = 8;
constexpr int64_t kMaxAlignment = 4096;

// Entries with offsets from the start of the data; `data_bytes` becomes their sum.
std::vector<TensorEntry> place_tensors(std::span<const TensorSpec> tensors, int64_t& data_bytes) {
  std::unordered_set<std::string_view> names;
  std::vector<TensorEntry> entries;
  for (const TensorSpec& spec : tensors) {
    if (spec.name == detail::kMetadataKey || !names.insert(spec.name).second) {
      throw InvalidInput(spec.name,
                         "expected tensor names that differ from each other and from __metadata__, got this");
    }
    CHILIAD_CHECK(spec.shape.rank() <= detail::kMaxRank, "tensor {} has {} axes", spec.name,
                  spec.shape.rank());
    const int64_t bytes = spec.shape.count() * dtype_bytes(spec.dtype);
    entries.push_back({spec.name, spec.dtype, spec.shape, data_bytes, data_bytes + bytes});
    data_bytes += bytes;
  }
  return entries;
}

// A list of pairs, for an ordered JSON object looks through all its members at each insertion.
std::string header_json(const std::vector<TensorEntry>& tensors, const Metadata& metadata) {
  std::string text = "{";
  const auto add = [&](const std::string& name, const Json& value) {
    text += (text.size() > 1 ? "," : "") + json_text(Json(name)) + ":" + json_text(value);
  };
  try {
    if (!metadata.empty()) add(std::string(detail::kMetadataKey), Json(metadata));
    for (const TensorEntry& tensor : tensors) {
      add(tensor.name, Json{{"dtype", dtype_name(tensor.dtype)},
                            {"shape", tensor.shape.sizes()},
                            {"data_offsets", {tensor.begin, tensor.end}}});
    }
  } catch (const Json::exception&) {
    throw InvalidInput("safetensors header", "expected names and metadata in UTF-8, got other bytes");
  }
  return text + "}";
}

std::string with_length(std::string json, int64_t alignment) {
  const int64_t used = kLengthBytes + static_cast<int64_t>(json.size());
  json.append(static_cast<size_t>((alignment - used % alignment) % alignment), ' ');
  if (static_cast<int64_t>(json.size()) > kMaxHeaderBytes) {
    throw InvalidInput(
        "safetensors header",
        fmt::format("expected at most {} bytes, got {}. Use several files", kMaxHeaderBytes, json.size()));
  }
  std::string header;
  for (int64_t i = 0; i < kLengthBytes; ++i) header += static_cast<char>(json.size() >> (8 * i) & 0xFF);
  return header + json;
}

}  // namespace

SafetensorsLayout plan_safetensors(std::span<const TensorSpec> tensors, const Metadata& metadata,
                                   int64_t alignment) {
  const bool power_of_two = alignment > 0 && (alignment & (alignment - 1)) == 0;
  CHILIAD_CHECK(power_of_two && alignment >= kLengthBytes && alignment <= kMaxAlignment, "alignment {}",
                alignment);
  SafetensorsLayout layout;
  int64_t data_bytes = 0;
  layout.tensors = place_tensors(tensors, data_bytes);
  layout.header = with_length(header_json(layout.tensors, metadata), alignment);
  const auto data_start = static_cast<int64_t>(layout.header.size());
  for (TensorEntry& tensor : layout.tensors) {
    tensor.begin += data_start;
    tensor.end += data_start;
  }
  layout.file_bytes = data_start + data_bytes;
  return layout;
}

SafetensorsLayout write_safetensors(io::File& file, std::span<const TensorBytes> tensors,
                                    const Metadata& metadata, int64_t alignment) {
  std::vector<TensorSpec> specs;
  for (const TensorBytes& tensor : tensors) specs.push_back(tensor.spec);
  SafetensorsLayout layout = plan_safetensors(specs, metadata, alignment);
  file.write(layout.header);
  for (size_t i = 0; i < tensors.size(); ++i) {
    CHILIAD_CHECK_EQ(static_cast<int64_t>(tensors[i].bytes.size()), layout.tensors[i].num_bytes());
    file.write(tensors[i].bytes);
  }
  return layout;
}

}  // namespace chiliad::weights
