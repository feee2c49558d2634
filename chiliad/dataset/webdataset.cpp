#include "chiliad/dataset/detail/webdataset.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <span>
#include <unordered_map>

#include "chiliad/base/log.h"
#include "chiliad/dataset/detail/tar_reader.h"

namespace chiliad::dataset::detail {
namespace {

struct KeyedMember {
  std::string key;
  std::string extension;  ///< lower case, all behind the first dot of the basename
  const TarMember* member = nullptr;
};

/// Members with one key that stand together.
struct Run {
  size_t first = 0;
  size_t count = 0;
};

/// Where the first dot of the basename stands; npos for names that are no part of a sample (no dot, or
/// hidden).
size_t key_end(const std::string& name) {
  const size_t slash = name.rfind('/');
  const size_t base = slash == std::string::npos ? 0 : slash + 1;
  const size_t dot = name.find('.', base);
  return dot == base ? std::string::npos : dot;
}

bool split_name(const TarMember& member, KeyedMember& keyed) {
  const size_t dot = key_end(member.name);
  if (dot == std::string::npos) return false;
  keyed.key = member.name.substr(0, dot);
  keyed.extension = member.name.substr(dot + 1);
  for (char& c : keyed.extension) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  keyed.member = &member;
  return true;
}

std::vector<Run> runs_of(const std::vector<KeyedMember>& members) {
  std::vector<Run> runs;
  for (size_t i = 0; i < members.size(); ++i) {
    if (i == 0 || members[i].key != members[i - 1].key) runs.push_back({i, 0});
    ++runs.back().count;
  }
  return runs;
}

/// Why the members are not one whole sample; empty if they are.
std::string why_bad(std::span<const KeyedMember> members) {
  constexpr size_t kMaxParts = 1024;
  if (members.size() > kMaxParts)
    return fmt::format("has {} parts, expected at most {}", members.size(), kMaxParts);
  for (size_t i = 0; i < members.size(); ++i) {
    const TarMember& member = *members[i].member;
    if (!member.unusable.empty()) return fmt::format("{} {}", member.name, member.unusable);
    if (member.after_damage) return fmt::format("{} follows a damaged place", member.name);
    for (size_t k = 0; k < i; ++k) {
      if (members[k].extension == members[i].extension) return fmt::format("{} stands twice", member.name);
    }
  }
  const auto is_image = [](const KeyedMember& m) {
    return media_of(extension_of(m.member->name)) == index::MediaType::kImage;
  };
  if (std::none_of(members.begin(), members.end(), is_image)) return "image is missing";
  return {};
}

/// Captions come from the .txt parts; where there is none from the .caption parts, else from the .json parts.
SampleDraft draft_sample(std::span<const KeyedMember> members) {
  SampleDraft sample;
  sample.key = members.front().key;
  const auto ends_in = [](const KeyedMember& m, const char* extension) {
    return extension_of(m.member->name) == extension;
  };
  const auto any = [&](const char* extension) {
    return std::any_of(members.begin(), members.end(), [&](auto& m) { return ends_in(m, extension); });
  };
  const char* const source = any("txt") ? "txt" : any("caption") ? "caption" : "json";
  for (const KeyedMember& m : members) {
    sample.parts.push_back({.file = 0,
                            .offset = m.member->offset,
                            .length = m.member->length,
                            .media = media_of(extension_of(m.member->name)),
                            .is_caption = ends_in(m, source)});
  }
  return sample;
}

void add_damages(const TarListing& listing, const index::SourceFile& tar, ShardDraft& shard) {
  for (const TarDamage& damage : listing.damages) {
    const size_t end = key_end(damage.name);
    const std::string key = end == std::string::npos ? std::string() : damage.name.substr(0, end);
    shard.bad.push_back({key, tar.path,
                         fmt::format("byte {}: {}; {} bytes were passed over", damage.offset, damage.reason,
                                     damage.skipped)});
  }
}

}  // namespace

ShardDraft draft_tar_shard(const std::filesystem::path& root, const index::SourceFile& tar) {
  const io::File file = io::File::open_read(root / tar.path);
  const TarListing listing = list_tar(file);
  ShardDraft shard;
  shard.files.push_back({tar.path, file.stamp().size, file.stamp().mtime_ns});
  std::vector<KeyedMember> members;
  for (const TarMember& member : listing.members) {
    KeyedMember keyed;
    if (split_name(member, keyed)) members.push_back(std::move(keyed));
  }
  const std::vector<Run> runs = runs_of(members);
  std::unordered_map<std::string_view, size_t> last_run;  // of each key
  std::unordered_map<std::string_view, int> num_runs;
  for (size_t i = 0; i < runs.size(); ++i) {
    last_run[members[runs[i].first].key] = i;
    ++num_runs[members[runs[i].first].key];
  }

  for (size_t i = 0; i < runs.size(); ++i) {
    const auto own = std::span<const KeyedMember>(members).subspan(runs[i].first, runs[i].count);
    const std::string& key = own.front().key;
    if (last_run[key] != i) continue;
    const std::string reason = num_runs[key] > 1 ? "parts are not adjacent" : why_bad(own);
    if (reason.empty()) {
      shard.samples.push_back(draft_sample(own));
    } else {
      shard.bad.push_back({key, tar.path, reason});
    }
  }
  add_damages(listing, tar, shard);
  if (listing.members.empty()) log_warn("{}: has no members", (root / tar.path).string());
  return shard;
}

}  // namespace chiliad::dataset::detail
