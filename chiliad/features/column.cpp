#include "chiliad/features/column.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "chiliad/base/error.h"
#include "chiliad/base/json_text.h"
#include "chiliad/io/file.h"
#include "chiliad/weights/safetensors.h"

namespace chiliad::features {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int64_t kMaxSummaryBytes = 64 << 20;
constexpr const char* kSummaryFile = "column.json";

Json summary_json(const ColumnSummary& summary) {
  return {{"features", summary.num_features},
          {"refused", summary.num_refused},
          {"bytes", summary.num_bytes},
          {"dtype", dtype_name(summary.dtype)},
          {"channels", summary.channels},
          {"pooled_channels", summary.pooled_channels},
          {"latent_pixels", summary.latent_pixels},
          {"distributions", summary.distributions},
          {"mean", summary.mean},
          {"deviation", summary.deviation},
          {"scaling_factor", summary.scaling_factor},
          {"shift_factor", summary.shift_factor}};
}

ColumnSummary read_summary(const Json& json) {
  ColumnSummary summary;
  json.at("features").get_to(summary.num_features);
  json.at("refused").get_to(summary.num_refused);
  json.at("bytes").get_to(summary.num_bytes);
  summary.dtype =
      json.at("dtype").get<std::string>() == dtype_name(DType::kBF16) ? DType::kBF16 : DType::kF32;
  json.at("channels").get_to(summary.channels);
  json.at("pooled_channels").get_to(summary.pooled_channels);
  json.at("latent_pixels").get_to(summary.latent_pixels);
  json.at("distributions").get_to(summary.distributions);
  json.at("mean").get_to(summary.mean);
  json.at("deviation").get_to(summary.deviation);
  json.at("scaling_factor").get_to(summary.scaling_factor);
  json.at("shift_factor").get_to(summary.shift_factor);
  return summary;
}

Json facts_json(const Identity& identity) {
  Json facts = Json::object();
  for (const auto& [name, value] : identity.facts) facts[name] = value;
  return facts;
}

/// Of all that the file says beside it.
std::string check_of(Json json) {
  json.erase("check");
  return fmt::format("{:016x}", hash64(json_text(json)));
}

/// Columns made before there was a check have none.
Json read_json(const fs::path& path) {
  try {
    Json json = parse_json<Json>(io::read_text(path, kMaxSummaryBytes));
    if (!json.contains("check") || json.at("check") == check_of(json)) return json;
  } catch (const Json::exception& error) {
    throw CorruptData(path.string(), fmt::format("is no JSON: {}", error.what()));
  }
  throw CorruptData(
      path.string(),
      "does not say what was written. Run `chiliad encode RUN.yaml` again, which makes it anew from the "
      "parts");
}

/// Facts of the wanted column that the other one has differently.
std::string difference(const Json& facts, const Identity& wanted) {
  std::string text;
  for (const auto& [name, value] : wanted.facts) {
    const std::string other = facts.contains(name) ? facts.at(name).get<std::string>() : "not there";
    if (other == value) continue;
    text += fmt::format("{}{}: was {}, is {}", text.empty() ? "" : "; ", name, other, value);
  }
  return text;
}

/// Of the other columns of the kind, what makes the one that is most like it another one.
std::string nearest_difference(const fs::path& columns, const Identity& wanted) {
  std::string best;
  if (!fs::is_directory(columns)) return best;
  std::vector<fs::path> others;
  for (const auto& entry : fs::directory_iterator(columns)) {
    const auto name = entry.path().filename().string();
    if (name.starts_with(std::string(kind_name(wanted.kind)) + "-") && is_whole(entry.path()))
      others.push_back(entry.path());
  }
  std::sort(others.begin(), others.end());
  for (const auto& other : others) {
    const auto text = difference(read_json(other / kSummaryFile).at("facts"), wanted);
    if (best.empty() || text.size() < best.size()) best = text;
  }
  return best;
}

fs::path folder_in(const fs::path& index, const Identity& identity) {
  return index / "columns" / identity.folder_name();
}

[[noreturn]] void refuse(const fs::path& folder, const Identity& identity) {
  const std::string what = identity.kind == Kind::kLatents ? "latents of its pictures" : "encoded captions";
  const std::string other = nearest_difference(folder / "columns", identity);
  throw InvalidInput(
      folder.string(),
      fmt::format("has no {} for this run file{}. Run `chiliad encode RUN.yaml` first", what,
                  other.empty() ? "" : fmt::format(" (there are others, of which {})", other)));
}

}  // namespace

fs::path column_folder(const index::Index& index, const Identity& identity) {
  CHILIAD_CHECK(index.members().size() == 1, "the columns of {} sources lie in their own indexes",
                index.members().size());
  return folder_in(index.folder(), identity);
}

fs::path part_path(const fs::path& column, const Digest& shard, int64_t part) {
  return column / shard.hex().substr(0, 16) / fmt::format("{:06}.safetensors", part);
}

fs::path empty_text_path(const fs::path& column) {
  return column / "empty.safetensors";
}

namespace {

std::string column_text(const Identity& identity, const PartCounts& parts, const ColumnSummary& summary) {
  Json list = Json::array();
  for (const auto& [shard, count] : parts) list.push_back({{"shard", shard.hex()}, {"parts", count}});
  Json json{{"version", 1},
            {"kind", kind_name(identity.kind)},
            {"key", identity.key().hex()},
            {"facts", facts_json(identity)},
            {"summary", summary_json(summary)},
            {"shards", list}};
  json["check"] = check_of(json);
  return json_text(json, 1) + "\n";
}

}  // namespace

void finish_column(const fs::path& column, const Identity& identity, const PartCounts& parts,
                   const ColumnSummary& summary) {
  io::write_atomic(column / kSummaryFile, column_text(identity, parts, summary));
}

bool is_finished(const fs::path& column, const Identity& identity, const PartCounts& parts,
                 const ColumnSummary& summary) {
  return is_whole(column) &&
         io::read_text(column / kSummaryFile, kMaxSummaryBytes) == column_text(identity, parts, summary);
}

bool is_whole(const fs::path& column) {
  return fs::exists(column / kSummaryFile);
}

ColumnFile read_column_file(const fs::path& column) {
  const Json json = read_json(column / kSummaryFile);
  try {
    ColumnFile file;
    if (json.at("kind").get<std::string>() == kind_name(Kind::kText)) file.kind = Kind::kText;
    file.key = Digest::from_hex(json.at("key").get<std::string>());
    file.summary = read_summary(json.at("summary"));
    for (const auto& shard : json.at("shards"))
      file.parts.emplace_back(Digest::from_hex(shard.at("shard").get<std::string>()),
                              shard.at("parts").get<int64_t>());
    return file;
  } catch (const Json::exception& error) {
    throw CorruptData((column / kSummaryFile).string(), error.what());
  }
}

Column Column::open(const index::Index& index, const std::vector<Identity>& identities) {
  CHILIAD_CHECK_EQ(identities.size(), index.members().size());
  Column column;
  column.kind_ = identities.front().kind;
  for (size_t m = 0; m < identities.size(); ++m) column.add_member(index, index.members()[m], identities[m]);
  return column;
}

void Column::add_member(const index::Index& index, const index::Index::Member& member,
                        const Identity& identity) {
  const fs::path folder = folder_in(member.folder, identity);
  if (!is_whole(folder)) refuse(member.folder, identity);
  const ColumnFile file = read_column_file(folder);
  if (file.key != identity.key()) refuse(member.folder, identity);
  add_summary(file.summary, folder);
  const std::map<Digest, int64_t> parts(file.parts.begin(), file.parts.end());
  for (uint32_t shard = member.first_shard; shard < member.end_shard; ++shard) {
    const Digest& content = index.manifest().shards[shard].content;
    const auto found = parts.find(content);
    if (found == parts.end()) refuse(member.folder, identity);  // the index has grown
    add_shard(folder, identity.key(), content, found->second);
  }
  if (identity.kind == Kind::kText && empty_text_.empty()) read_empty_text(folder, identity.key());
}

/// What the values are must be the same in all sources; counts and moments are those of all together.
void Column::add_summary(const ColumnSummary& own, const fs::path& folder) {
  ColumnSummary& sum = summary_;
  if (sum.num_features == 0) {
    sum = own;
    return;
  }
  const bool fits = own.dtype == sum.dtype && own.channels == sum.channels &&
                    own.pooled_channels == sum.pooled_channels && own.latent_pixels == sum.latent_pixels &&
                    own.distributions == sum.distributions;
  if (!fits && own.num_features > 0) {
    throw CorruptData(folder.string(),
                      fmt::format("its features have {} channels of {}, those of the sources before it {} of "
                                  "{}. Remove the folder and run `chiliad encode RUN.yaml` again",
                                  own.channels, dtype_name(own.dtype), sum.channels, dtype_name(sum.dtype)));
  }
  const auto weight = [](const ColumnSummary& of) { return static_cast<double>(of.num_bytes); };
  const double all = weight(sum) + weight(own);
  if (all > 0.0) {
    const auto square = [](const ColumnSummary& of) {
      return of.deviation * of.deviation + of.mean * of.mean;
    };
    const double mean = (sum.mean * weight(sum) + own.mean * weight(own)) / all;
    const double squares = (square(sum) * weight(sum) + square(own) * weight(own)) / all;
    sum.mean = mean;
    sum.deviation = std::sqrt(std::max(0.0, squares - mean * mean));
  }
  sum.num_features += own.num_features;
  sum.num_refused += own.num_refused;
  sum.num_bytes += own.num_bytes;
}

void Column::read_empty_text(const fs::path& folder, const Digest& key) {
  const auto path = empty_text_path(folder);
  const auto file = io::File::open_read(path);
  for (const auto& entry : read_part(path, key).entries) {
    Feature feature{entry.id, entry.dtype, entry.shape, {}};
    feature.bytes.resize(static_cast<size_t>(entry.num_bytes));
    file.read_at(entry.begin, feature.bytes);
    if (hash64(std::span<const std::byte>(feature.bytes)) != entry.checksum)
      throw CorruptData(path.string(),
                        "its bytes are not those that were written. Remove it and encode again");
    empty_text_.push_back(std::move(feature));
  }
}

void Column::add_shard(const fs::path& folder, const Digest& key, const Digest& content, int64_t num_parts) {
  Shard shard;
  shard.folder = folder;
  shard.content = content;
  for (int64_t part = 0; part < num_parts; ++part) {
    const auto path = part_path(folder, content, part);
    if (!fs::exists(path))
      throw CorruptData(path.string(), "is missing from a whole column. Run `chiliad encode RUN.yaml` again");
    PartContent read = read_part(path, key);
    for (auto& entry : read.entries) shard.places.push_back({std::move(entry), part});
    shard.refused.merge(read.refused);
  }
  std::sort(shard.places.begin(), shard.places.end(),
            [](const Place& a, const Place& b) { return a.entry.id < b.entry.id; });
  shards_.push_back(std::move(shard));
}

FeatureShape Column::latents_of(int64_t width, int64_t height) const {
  const int64_t rows = height / summary_.latent_pixels;
  const int64_t columns = width / summary_.latent_pixels;
  if (!summary_.distributions) return {summary_.dtype, Shape{summary_.channels, rows, columns}};
  return {summary_.dtype, Shape{2, summary_.channels, rows, columns}};
}

FeatureShape Column::text_of(int64_t num_tokens) const {
  return {summary_.dtype, Shape{num_tokens, summary_.channels}};
}

std::optional<FeatureShape> Column::pooled() const {
  if (summary_.pooled_channels == 0) return std::nullopt;
  return FeatureShape{summary_.dtype, Shape{summary_.pooled_channels}};
}

uint32_t Column::token_count(uint32_t shard, uint32_t caption) const {
  const auto* entry = find(shard, {caption, false});
  return entry == nullptr ? 1 : static_cast<uint32_t>(entry->shape[0]);
}

void Column::check_model(const spec::ModelOptions& model) const {
  const auto compare = [](const char* key, int64_t expected, int64_t got, const char* what) {
    if (expected == got) return;
    throw InvalidInput(key,
                       fmt::format("expected {} of {}, got {}. Set it to {}", what, expected, got, expected));
  };
  if (kind_ == Kind::kLatents) {
    compare("model.latent_channels", summary_.channels, model.latent_channels, "the autoencoder's channels");
    compare("model.latent_pixels", summary_.latent_pixels, model.latent_pixels, "the autoencoder's factor");
    return;
  }
  compare("model.text_channels", summary_.channels, model.text_channels, "the text encoder's width");
  if (model.family == "sd3" || model.family == "flux")
    compare("model.pooled_channels", summary_.pooled_channels, model.pooled_channels,
            "the text encoder's pooled width");
}

const Column::Place* Column::place(uint32_t shard, FeatureId id) const {
  const auto& places = shards_.at(shard).places;
  const auto found =
      std::lower_bound(places.begin(), places.end(), id,
                       [](const Place& place, FeatureId wanted) { return place.entry.id < wanted; });
  return found == places.end() || found->entry.id != id ? nullptr : &*found;
}

const FeatureEntry* Column::find(uint32_t shard, FeatureId id) const {
  const Place* found = place(shard, id);
  return found == nullptr ? nullptr : &found->entry;
}

std::string Column::read(uint32_t shard, FeatureId id, std::span<std::byte> out) const {
  const auto& refused = shards_.at(shard).refused;
  if (const auto found = refused.find(id.number); found != refused.end()) return found->second;
  const Place* place = this->place(shard, id);
  CHILIAD_CHECK(place != nullptr, "the column has no feature {} of shard {}", id.number, shard);
  CHILIAD_CHECK_EQ(static_cast<int64_t>(out.size()), place->entry.num_bytes);
  const auto path = part_path(shards_[shard].folder, shards_[shard].content, place->part);
  const auto file = io::File::open_read(path);
  const int64_t got = file.read_some_at(place->entry.begin, out);
  if (got < place->entry.num_bytes)
    return fmt::format("{}: ends before feature {}", path.filename().string(), id.number);
  const uint64_t checksum = hash64(std::span<const std::byte>(out));
  if (checksum == place->entry.checksum) return "";
  return fmt::format(
      "{}/{}: feature {}: checksum: expected {:016x}, got {:016x}. Remove the file and encode "
      "again",
      path.parent_path().filename().string(), path.filename().string(), id.number, place->entry.checksum,
      checksum);
}

}  // namespace chiliad::features
