#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "chiliad/index/index.h"
#include "chiliad/loader/item_loader.h"
#include "chiliad/stepplan/journal.h"

namespace chiliad::report {

/// What an item of a journal is now.
enum class ItemState {
  kGood,         ///< everything of it can be used
  kBad,          ///< it still cannot
  kUnavailable,  ///< its storage does not answer
};
/// "good", "bad", "unavailable".
[[nodiscard]] const char* state_name(ItemState state);

/// An amendment of a run's journal and its item, looked at again.
struct QuarantinedItem {
  stepplan::Amendment amendment;
  std::string kind;  ///< stepplan::reason_kind
  std::string key;
  std::string group;  ///< source or shard
  std::string file;
  uint64_t first_byte = 0;
  uint64_t end_byte = 0;
  ItemState state = ItemState::kBad;
  std::string now;               ///< what is wrong now; empty where it is good
  std::vector<std::byte> thumb;  ///< PNG; empty where nothing decodes
  bool is_partial = false;       ///< the picture is damaged: what decodes of it
};

struct QuarantineOptions {
  /// Beside the payload: what else is wrong with a sample, e.g. its stored latents; "" where nothing is.
  /// Empty: nothing else belongs to it.
  std::function<std::string(int64_t sample)> check_more{};
  int32_t thumb_side = 128;
  std::function<void(int64_t done, int64_t total)> progress{};
};

/// Looks at every item of the journal: its bytes against the index's checksums, its picture, its captions.
/// Writes nothing. Throws InvalidInput where the journal names samples that the index has not.
[[nodiscard]] std::vector<QuarantinedItem> examine(const stepplan::Journal& journal,
                                                   const index::Index& index,
                                                   const QuarantineOptions& options);

struct QuarantinePageOptions {
  std::string title;
  std::string made_at;
  size_t max_items = 500;
};
/// One HTML page, which needs nothing else.
[[nodiscard]] std::string quarantine_page(const std::vector<QuarantinedItem>& items,
                                          const QuarantinePageOptions& options);
/// The same as JSON, without pictures.
[[nodiscard]] std::string quarantine_json(const std::vector<QuarantinedItem>& items, std::string_view out);

}  // namespace chiliad::report
