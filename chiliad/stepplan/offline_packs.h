#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "chiliad/base/hash.h"
#include "chiliad/spec/options/data.h"

namespace chiliad::stepplan {

class Plan;

/// Packs made beforehand: lists of samples that share a row. A small file (docs/formats/packs.md), made by
/// `chiliad data pack`; no data is rewritten, and several may lie beside each other. Immutable.
class OfflinePacks {
 public:
  struct Identity {
    Digest data;       ///< of the index
    Digest tokenizer;  ///< of the document encoder; zeros: packs are of pictures
    /// What decides which samples there are and how long they are, as text, by name.
    std::vector<std::pair<std::string, std::string>> settings;
  };
  struct Pack {
    std::vector<int64_t> samples;  ///< by number
    int64_t tokens = 0;            ///< positions, at most
  };

  /// groups: of each shuffle window its packs, none of them empty.
  OfflinePacks(Identity identity, int64_t max_tokens, const std::vector<std::vector<Pack>>& groups);
  /// Throws CorruptData with `place` for anything but a file of this version.
  [[nodiscard]] static OfflinePacks from_bytes(std::span<const std::byte> bytes, const std::string& place);
  [[nodiscard]] std::vector<std::byte> to_bytes() const;

  [[nodiscard]] const Identity& identity() const { return identity_; }
  [[nodiscard]] int64_t max_tokens() const { return max_tokens_; }  ///< of a row
  [[nodiscard]] int64_t num_packs() const { return static_cast<int64_t>(tokens_.size()); }
  [[nodiscard]] int64_t num_samples() const { return static_cast<int64_t>(samples_.size()); }
  /// Packs of each shuffle window.
  [[nodiscard]] std::vector<int64_t> group_sizes() const;
  [[nodiscard]] std::span<const int64_t> samples(int64_t pack) const;
  [[nodiscard]] int64_t tokens(int64_t pack) const { return tokens_.at(static_cast<size_t>(pack)); }
  /// Part of the rows' positions that are used.
  [[nodiscard]] double fill() const;
  /// Of all of it: the file's checksum.
  [[nodiscard]] Digest digest() const { return digest_; }

 private:
  OfflinePacks() = default;
  [[nodiscard]] std::vector<std::byte> body() const;

  Identity identity_;
  int64_t max_tokens_ = 0;
  std::vector<uint64_t> group_start_{0};  // first pack of each window, and the end
  std::vector<uint64_t> pack_start_{0};   // first sample of each pack, and the end
  std::vector<int64_t> samples_;
  std::vector<uint32_t> tokens_;
  Digest digest_;
};

/// What packs for these settings must have been made from.
[[nodiscard]] OfflinePacks::Identity packs_identity(const Digest& index, const Digest& tokenizer,
                                                    const spec::DataOptions& options);

/// Throws InvalidInput naming each input that differs, with both values.
void check_packs(const OfflinePacks::Identity& made, const OfflinePacks::Identity& now,
                 const std::string& place);

struct OfflinePacking {
  int64_t max_tokens = 0;      ///< of a pack
  int64_t window_blocks = 16;  ///< blocks of the index whose samples are packed together
  /// Positions of a sample, the most that it may take in any epoch.
  std::function<int64_t(int64_t sample)> positions;
  std::function<void(int64_t done, int64_t total)> progress;  ///< windows; may be empty
};

/// Best fit decreasing, inside each window: the longest sample that is left goes to the pack with least room
/// for it. samples: those of the plan, ascending; block_ends: of the index. Throws InvalidInput for a sample
/// longer than a pack.
[[nodiscard]] OfflinePacks make_packs(const std::vector<int64_t>& samples,
                                      const std::vector<int64_t>& block_ends, OfflinePacks::Identity identity,
                                      const OfflinePacking& packing);

}  // namespace chiliad::stepplan
