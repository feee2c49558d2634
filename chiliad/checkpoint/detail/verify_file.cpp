#include "chiliad/checkpoint/detail/verify_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "chiliad/base/error.h"
#include "chiliad/checkpoint/detail/block_file.h"
#include "chiliad/checkpoint/detail/part_file.h"
#include "chiliad/checkpoint/detail/positional.h"
#include "chiliad/weights/safetensors.h"

namespace chiliad::checkpoint::detail {
namespace {

struct Member {
  const StoredTensor* tensor;
  const StoredBox* box;
  int64_t end;
  std::string entry;  // its name in the file

  [[nodiscard]] std::string name() const { return tensor->section + "/" + tensor->name; }
};

/// The boxes of a file that hold bytes, by position.
std::vector<Member> members_of(const Manifest& manifest, size_t index) {
  std::vector<Member> members;
  for (const StoredTensor& tensor : manifest.tensors) {
    int64_t earlier = 0;
    for (const StoredBox& box : tensor.boxes) {
      if (box.file != index || box.box.count() == 0) continue;
      members.push_back({&tensor, &box, box.at + box.box.count() * dtype_bytes(tensor.dtype),
                         entry_name(tensor.name, earlier++)});
    }
  }
  std::sort(members.begin(), members.end(),
            [](const Member& a, const Member& b) { return a.box->at < b.box->at; });
  return members;
}

/// Takes the digests of a file's boxes from its blocks in ascending order. Boxes start at multiples of their
/// element, and so do blocks: a part never cuts an element.
class BoxDigests {
 public:
  BoxDigests(std::string path, std::vector<Member> members)
      : path_(std::move(path)), members_(std::move(members)) {}

  void add(int64_t begin, std::span<const std::byte> bytes) {
    const int64_t end = begin + static_cast<int64_t>(bytes.size());
    while (next_ < members_.size() && members_[next_].box->at < end) {
      const Member& member = members_[next_];
      if (!hasher_.has_value()) hasher_.emplace(member.tensor->dtype, member.tensor->shape, member.box->box);
      const int64_t from = std::max(begin, member.box->at);
      const int64_t to = std::min(end, member.end);
      hasher_->add(bytes.subspan(static_cast<size_t>(from - begin), static_cast<size_t>(to - from)));
      if (to < member.end) return;
      check(member);
      hasher_.reset();
      ++next_;
    }
  }

 private:
  void check(const Member& member) const {
    if (hasher_->digest() == member.box->digest) return;
    throw CorruptData(path_, fmt::format("{} {}: expected digest {:016x}, got {:016x}", member.name(),
                                         member.box->box.to_string(), member.box->digest, hasher_->digest()));
  }

  std::string path_;
  std::vector<Member> members_;
  size_t next_ = 0;
  std::optional<PositionalHasher> hasher_;
};

void check_header(const std::filesystem::path& path, const std::vector<Member>& members) {
  const auto file = weights::SafetensorsFile::open(path);
  if (file.tensors().size() != members.size()) {
    throw CorruptData(path.string(), fmt::format("the header lists {} tensors, the manifest {}",
                                                 file.tensors().size(), members.size()));
  }
  for (const Member& member : members) {
    const weights::TensorEntry* entry = file.find(member.entry);
    const bool same = entry != nullptr && entry->dtype == member.tensor->dtype &&
                      entry->shape == member.box->box.size && entry->begin == member.box->at &&
                      entry->end == member.end;
    if (!same) throw CorruptData(path.string(), fmt::format("{}: header and manifest differ", member.name()));
  }
}

}  // namespace

void verify_file(const std::filesystem::path& root, const Manifest& manifest, size_t index) {
  const StoredFile& stored = manifest.files[index];
  const std::vector<Member> members = members_of(manifest, index);
  BlockReader reader(root, stored);
  BoxDigests digests(reader.path().string(), members);
  for (size_t block = 0; block < stored.blocks.size(); ++block) {
    const auto position = static_cast<int64_t>(block);
    digests.add(position * kBlockBytes, reader.block(position));
  }
  if (!members.empty()) check_header(reader.path(), members);
}

}  // namespace chiliad::checkpoint::detail
