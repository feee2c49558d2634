#include "chiliad/stepplan/offline_packs.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "chiliad/base/error.h"
#include "chiliad/base/json_text.h"

namespace chiliad::stepplan {
namespace {

constexpr char kMagic[8] = {'C', 'H', 'P', 'A', 'C', 'K', 'S', '\n'};
constexpr uint32_t kVersion = 1;
constexpr size_t kHeader = 96;
constexpr size_t kTrailer = 16;
constexpr uint64_t kMaxSettings = 1 << 20;

void put(std::vector<std::byte>& bytes, const void* from, size_t count) {
  const auto* first = static_cast<const std::byte*>(from);
  bytes.insert(bytes.end(), first, first + count);
}
void put_u64(std::vector<std::byte>& bytes, uint64_t value) {
  put(bytes, &value, sizeof value);
}
void put_u32(std::vector<std::byte>& bytes, uint32_t value) {
  put(bytes, &value, sizeof value);
}
void put_digest(std::vector<std::byte>& bytes, const Digest& digest) {
  put_u64(bytes, digest.high);
  put_u64(bytes, digest.low);
}

std::string settings_text(const OfflinePacks::Identity& identity) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const auto& [name, value] : identity.settings) json[name] = value;
  return json_text(json);
}

/// Reads little-endian values one after another; says where a file ends too early.
class Reader {
 public:
  Reader(std::span<const std::byte> bytes, const std::string& place) : bytes_(bytes), place_(place) {}

  template <class T>
  T value() {
    T value;
    copy(&value, sizeof value);
    return value;
  }
  Digest digest() {
    Digest digest;
    digest.high = value<uint64_t>();
    digest.low = value<uint64_t>();
    return digest;
  }
  template <class T>
  std::vector<T> values(uint64_t count) {
    need(count, sizeof(T));
    std::vector<T> values(count);
    copy(values.data(), count * sizeof(T));
    return values;
  }
  std::string text(uint64_t count) {
    need(count, 1);
    std::string text(count, '\0');
    copy(text.data(), count);
    return text;
  }
  void align() {
    while (at_ % 8 != 0) {
      if (value<char>() != 0)
        throw CorruptData(place_, fmt::format("byte {}: expected 0 as padding", at_ - 1));
    }
  }
  [[nodiscard]] size_t at() const { return at_; }

 private:
  void need(uint64_t count, size_t size) const {
    if (count <= (bytes_.size() - at_) / size) return;
    throw CorruptData(place_,
                      fmt::format("expected {} values of {} bytes at byte {}, got a file of {} bytes. Make "
                                  "it again with `chiliad data pack`",
                                  count, size, at_, bytes_.size()));
  }
  void copy(void* to, size_t count) {
    need(count, 1);
    if (count > 0) std::memcpy(to, bytes_.data() + at_, count);
    at_ += count;
  }
  std::span<const std::byte> bytes_;
  const std::string& place_;
  size_t at_ = 0;
};

void check_starts(const std::vector<uint64_t>& starts, uint64_t end, const char* what,
                  const std::string& place) {
  const bool rises = std::is_sorted(starts.begin(), starts.end(), std::less_equal<>());
  if (!starts.empty() && starts.front() == 0 && starts.back() == end && rises) return;
  throw CorruptData(place, fmt::format("{}: expected rising numbers from 0 to {}", what, end));
}

}  // namespace

OfflinePacks::OfflinePacks(Identity identity, int64_t max_tokens,
                           const std::vector<std::vector<Pack>>& groups)
    : identity_(std::move(identity)), max_tokens_(max_tokens) {
  for (const auto& group : groups) {
    if (group.empty()) continue;
    for (const Pack& pack : group) {
      CHILIAD_CHECK(!pack.samples.empty() && pack.tokens > 0 && pack.tokens <= max_tokens,
                    "a pack of {} samples, {} tokens", pack.samples.size(), pack.tokens);
      samples_.insert(samples_.end(), pack.samples.begin(), pack.samples.end());
      pack_start_.push_back(samples_.size());
      tokens_.push_back(static_cast<uint32_t>(pack.tokens));
    }
    group_start_.push_back(tokens_.size());
  }
  digest_ = hash128(body());
}

std::vector<std::byte> OfflinePacks::body() const {
  const std::string settings = settings_text(identity_);
  std::vector<std::byte> bytes;
  bytes.reserve(kHeader + settings.size() + 8 * (group_start_.size() + pack_start_.size() + samples_.size()) +
                4 * tokens_.size() + 64);
  put(bytes, kMagic, sizeof kMagic);
  put_u32(bytes, kVersion);
  put_u32(bytes, static_cast<uint32_t>(settings.size()));
  put_u64(bytes, group_start_.size() - 1);
  put_u64(bytes, tokens_.size());
  put_u64(bytes, samples_.size());
  put_u64(bytes, static_cast<uint64_t>(max_tokens_));
  put_digest(bytes, identity_.data);
  put_digest(bytes, identity_.tokenizer);
  put_digest(bytes, hash128(std::as_bytes(std::span(settings))));
  put(bytes, settings.data(), settings.size());
  bytes.resize((bytes.size() + 7) / 8 * 8);
  put(bytes, group_start_.data(), 8 * group_start_.size());
  put(bytes, pack_start_.data(), 8 * pack_start_.size());
  put(bytes, samples_.data(), 8 * samples_.size());
  put(bytes, tokens_.data(), 4 * tokens_.size());
  bytes.resize((bytes.size() + 7) / 8 * 8);
  return bytes;
}

std::vector<std::byte> OfflinePacks::to_bytes() const {
  std::vector<std::byte> bytes = body();
  put_digest(bytes, digest_);
  return bytes;
}

OfflinePacks OfflinePacks::from_bytes(std::span<const std::byte> bytes, const std::string& place) {
  Reader reader(bytes, place);
  if (reader.text(sizeof kMagic) != std::string_view(kMagic, sizeof kMagic))
    throw CorruptData(place, "expected a file of `chiliad data pack`, got another kind of file");
  if (const auto version = reader.value<uint32_t>(); version != kVersion)
    throw CorruptData(
        place, fmt::format("version: expected {}, got {}. Make it again with `chiliad data pack`", kVersion,
                           version));
  OfflinePacks packs;
  const auto settings_bytes = reader.value<uint32_t>();
  const auto num_groups = reader.value<uint64_t>();
  const auto num_packs = reader.value<uint64_t>();
  const auto num_samples = reader.value<uint64_t>();
  packs.max_tokens_ = static_cast<int64_t>(reader.value<uint64_t>());
  packs.identity_.data = reader.digest();
  packs.identity_.tokenizer = reader.digest();
  const Digest settings_digest = reader.digest();
  if (settings_bytes > kMaxSettings || num_groups >= bytes.size() || num_packs >= bytes.size())
    throw CorruptData(place, "header: counts beyond the file's size. Make it again with `chiliad data pack`");
  const std::string settings = reader.text(settings_bytes);
  reader.align();
  packs.group_start_ = reader.values<uint64_t>(num_groups + 1);
  packs.pack_start_ = reader.values<uint64_t>(num_packs + 1);
  packs.samples_ = reader.values<int64_t>(num_samples);
  packs.tokens_ = reader.values<uint32_t>(num_packs);
  reader.align();
  packs.digest_ = hash128(bytes.first(reader.at()));
  if (const Digest stored = reader.digest(); stored != packs.digest_ || reader.at() != bytes.size())
    throw CorruptData(
        place, fmt::format("checksum: expected {} at the end, got {}. Make it again with `chiliad data "
                           "pack`",
                           packs.digest_.hex(), stored.hex()));
  if (hash128(std::as_bytes(std::span(settings))) != settings_digest)
    throw CorruptData(place, "settings: their digest differs");
  check_starts(packs.group_start_, num_packs, "windows", place);
  check_starts(packs.pack_start_, num_samples, "packs", place);
  try {
    const auto json = parse_json<nlohmann::ordered_json>(settings);
    for (const auto& [name, value] : json.items())
      packs.identity_.settings.emplace_back(name, value.get<std::string>());
  } catch (const nlohmann::json::exception& error) {
    throw CorruptData(place, fmt::format("settings: {}", error.what()));
  }
  return packs;
}

std::vector<int64_t> OfflinePacks::group_sizes() const {
  std::vector<int64_t> sizes;
  for (size_t g = 0; g + 1 < group_start_.size(); ++g)
    sizes.push_back(static_cast<int64_t>(group_start_[g + 1] - group_start_[g]));
  return sizes;
}

std::span<const int64_t> OfflinePacks::samples(int64_t pack) const {
  const auto at = static_cast<size_t>(pack);
  const uint64_t first = pack_start_.at(at);
  return std::span(samples_).subspan(first, pack_start_.at(at + 1) - first);
}

double OfflinePacks::fill() const {
  double sum = 0.0;
  for (const uint32_t tokens : tokens_) sum += tokens;
  return tokens_.empty() ? 0.0
                         : sum / (static_cast<double>(tokens_.size()) * static_cast<double>(max_tokens_));
}

OfflinePacks::Identity packs_identity(const Digest& index, const Digest& tokenizer,
                                      const spec::DataOptions& options) {
  OfflinePacks::Identity identity{index, tokenizer, {}};
  const auto add = [&](const char* name, std::string value) {
    identity.settings.emplace_back(name, std::move(value));
  };
  add("data.languages", fmt::format("{}", fmt::join(options.languages, " ")));
  add("data.limit", fmt::format("{}", options.limit));
  add("data.held_out", fmt::format("{}", options.held_out));
  if (tokenizer != Digest{}) {
    add("data.sequence_length", fmt::format("{}", options.sequence_length));
    return identity;
  }
  add("data.buckets", options.buckets);
  add("data.bucket_choice", options.bucket_choice);
  add("data.max_crop", fmt::format("{}", options.max_crop));
  add("data.bucket_no_upscale", options.bucket_no_upscale ? "true" : "false");
  add("data.resolution", fmt::format("{}", options.resolution));
  add("data.bucket_step", fmt::format("{}", options.bucket_step));
  add("data.bucket_min", fmt::format("{}", options.bucket_min));
  add("data.bucket_max", fmt::format("{}", options.bucket_max));
  add("data.max_aspect_error", fmt::format("{}", options.max_aspect_error));
  return identity;
}

void check_packs(const OfflinePacks::Identity& made, const OfflinePacks::Identity& now,
                 const std::string& place) {
  std::string differing;
  const auto compare = [&](const std::string& name, const std::string& was, const std::string& is) {
    if (was == is) return;
    if (!differing.empty()) differing += "; ";
    differing += fmt::format("{}: was {}, is {}", name, was, is);
  };
  compare("data.index (what the data set holds)", made.data.hex(), now.data.hex());
  compare("data.tokenizer, data.end_token", made.tokenizer.hex(), now.tokenizer.hex());
  const std::map<std::string, std::string> old(made.settings.begin(), made.settings.end());
  std::set<std::string> known;
  for (const auto& [name, value] : now.settings) {
    known.insert(name);
    const auto at = old.find(name);
    compare(name, at == old.end() ? "not said" : at->second, value);
  }
  for (const auto& [name, value] : made.settings) {
    if (!known.contains(name)) compare(name, value, "not said");
  }
  if (differing.empty()) return;
  throw InvalidInput(
      "data.packs",
      fmt::format("{} was made for other data: {}. Make packs for these with `chiliad data pack`, or "
                  "leave data.packs out",
                  place, differing));
}

namespace {

struct Fit {
  int64_t room = 0;
  size_t pack = 0;
  auto operator<=>(const Fit&) const = default;
};

std::vector<OfflinePacks::Pack> pack_window(std::span<const int64_t> samples, const OfflinePacking& packing) {
  std::vector<std::pair<int64_t, int64_t>> lengths;  // longest first, then by number
  lengths.reserve(samples.size());
  for (const int64_t sample : samples) {
    const int64_t length = packing.positions(sample);
    if (length > packing.max_tokens) {
      throw InvalidInput(
          "data.micro_batch_tokens",
          fmt::format("expected at least the {} positions of sample {}, got {}. Did you mean {}?", length,
                      sample, packing.max_tokens, length));
    }
    lengths.emplace_back(-std::max<int64_t>(1, length), sample);
  }
  std::sort(lengths.begin(), lengths.end());
  std::vector<OfflinePacks::Pack> packs;
  std::set<Fit> open;
  for (const auto& [negative, sample] : lengths) {
    const int64_t length = -negative;
    const auto best = open.lower_bound({length, 0});
    Fit fit{packing.max_tokens, packs.size()};
    if (best == open.end()) {
      packs.emplace_back();
    } else {
      fit = *best;
      open.erase(best);
    }
    packs[fit.pack].samples.push_back(sample);
    packs[fit.pack].tokens += length;
    fit.room -= length;
    if (fit.room > 0) open.insert(fit);
  }
  for (auto& pack : packs) std::sort(pack.samples.begin(), pack.samples.end());
  return packs;
}

}  // namespace

OfflinePacks make_packs(const std::vector<int64_t>& samples, const std::vector<int64_t>& block_ends,
                        OfflinePacks::Identity identity, const OfflinePacking& packing) {
  CHILIAD_CHECK(packing.max_tokens > 0 && packing.window_blocks > 0 && packing.positions != nullptr);
  const auto step = static_cast<size_t>(packing.window_blocks);
  std::vector<std::vector<OfflinePacks::Pack>> groups;
  size_t first = 0;
  for (size_t block = 0; block < block_ends.size(); block += step) {
    const int64_t end = block_ends[std::min(block + step, block_ends.size()) - 1];
    size_t last = first;
    while (last < samples.size() && samples[last] < end) ++last;
    groups.push_back(pack_window(std::span(samples).subspan(first, last - first), packing));
    first = last;
    if (packing.progress)
      packing.progress(static_cast<int64_t>(std::min(block + step, block_ends.size())),
                       static_cast<int64_t>(block_ends.size()));
  }
  CHILIAD_CHECK_EQ(first, samples.size());
  return OfflinePacks(std::move(identity), packing.max_tokens, groups);
}

}  // namespace chiliad::stepplan
