#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "chiliad/base/error.h"
#include "chiliad/base/json_text.h"
#include "chiliad/index/content.h"
#include "chiliad/index/detail/parse.h"
#include "chiliad/index/index.h"
#include "chiliad/io/file.h"

namespace chiliad::index {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFileName = "manifest.json";
constexpr int kVersion = 1;
constexpr int64_t kMaxManifestBytes = 1LL << 30;

/// Bytes as JSON text: each byte that is not printable ASCII, and '%', is written %XX.
std::string escape_bytes(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<uint8_t>(c);
    if (byte < 0x20 || byte >= 0x7F || c == '%') {
      text += fmt::format("%{:02X}", byte);
    } else {
      text += c;
    }
  }
  return text;
}

std::string unescape_bytes(std::string_view text) {
  std::string bytes;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      bytes += text[i];
      continue;
    }
    if (text.size() - i < 3) throw std::invalid_argument("cut escape");
    bytes += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
    i += 2;
  }
  return bytes;
}

Json to_json(const Manifest& manifest) {
  Json shards = Json::array();
  for (const ShardEntry& shard : manifest.shards) {
    shards.push_back({{"sidecar", shard.sidecar},
                      {"content", shard.content.hex()},
                      {"num_samples", shard.num_samples},
                      {"payload_bytes", shard.payload_bytes}});
  }
  return {{"version", manifest.version},         {"layout", manifest.layout},
          {"root", escape_bytes(manifest.root)}, {"num_samples", manifest.num_samples},
          {"num_bad", manifest.num_bad},         {"digest", manifest.digest.hex()},
          {"shards", std::move(shards)}};
}

/// The exact text of the file. The checksum covers all but the root, which a user may edit after moving the
/// source.
std::string to_text(const Manifest& manifest) {
  Json json = to_json(manifest);
  Json covered = json;
  covered.erase("root");
  json["checksum"] = fmt::format("{:016x}", hash64(json_text(covered)));
  return json_text(json, 1) + "\n";
}

Manifest from_json(const Json& json) {
  Manifest manifest;
  manifest.version = json.at("version").get<int>();
  manifest.layout = json.at("layout").get<std::string>();
  manifest.root = unescape_bytes(json.at("root").get<std::string>());
  manifest.num_samples = json.at("num_samples").get<int64_t>();
  manifest.num_bad = json.at("num_bad").get<int64_t>();
  manifest.digest = Digest::from_hex(json.at("digest").get<std::string>());
  for (const Json& shard : json.at("shards")) {
    manifest.shards.push_back(
        {shard.at("sidecar").get<std::string>(), Digest::from_hex(shard.at("content").get<std::string>()),
         shard.at("num_samples").get<int64_t>(), shard.at("payload_bytes").get<int64_t>()});
  }
  return manifest;
}

void check_manifest(const Manifest& manifest, const std::string& place) {
  int64_t num_samples = 0;
  for (const ShardEntry& shard : manifest.shards) {
    if (shard.sidecar.empty() || shard.sidecar.find('/') != std::string::npos) {
      throw CorruptData(place, fmt::format("shards: '{}' is no file name. Index again", shard.sidecar));
    }
    num_samples += shard.num_samples;
  }
  if (num_samples != manifest.num_samples) {
    throw CorruptData(place, fmt::format("num_samples: is {}, expected the shards' sum {}. Index again",
                                         manifest.num_samples, num_samples));
  }
  if (manifest.digest != manifest_digest(manifest)) {
    throw CorruptData(place, "digest: is not that of the shards. Index again");
  }
}

}  // namespace

void write_manifest(const std::filesystem::path& folder, const Manifest& manifest) {
  io::write_atomic(folder / kFileName, to_text(manifest));
}

namespace detail {

Manifest parse_manifest(const std::string& text, const std::string& place) {
  Manifest manifest;
  int version = 0;
  try {
    const Json json = parse_json<Json>(text);
    version = json.at("version").get<int>();
    if (version == kVersion) manifest = from_json(json);
  } catch (const std::exception& error) {
    throw CorruptData(place, fmt::format("{}. Index again", error.what()));
  }
  if (version != kVersion) {
    throw CorruptData(place, fmt::format("version: expected {}, got {}. Index again", kVersion, version));
  }
  check_manifest(manifest, place);
  if (to_text(manifest) != text) {
    throw CorruptData(place, "checksum: the text is not what was written. Index again");
  }
  return manifest;
}

}  // namespace detail

Manifest read_manifest(const std::filesystem::path& folder) {
  const auto path = folder / kFileName;
  if (!io::stat_file(path).has_value()) {
    throw InvalidInput(folder.string(),
                       "holds no manifest.json: expected a folder made by 'chiliad data index'. If that was "
                       "interrupted, run it again: it goes on where it stopped");
  }
  return detail::parse_manifest(io::read_text(path, kMaxManifestBytes), path.string());
}

}  // namespace chiliad::index
