#pragma once

#include <cstdint>
#include <string>

namespace chiliad::spec {

/// Section `vision`: conversations about pictures as the items of a language model.
struct VisionOptions {
  std::string chat_template = "none";  ///< key `template`; none: items are documents
  int64_t side = 336;                  ///< of the square that the vision encoder sees, pixels
  int64_t patch = 14;
  std::string fit = "pad";     ///< pad, crop or tiles
  int64_t width = 1024;        ///< of the vision encoder, for predicted work alone; so the next one
  int64_t depth = 24;
};

/// Whether items are conversations.
[[nodiscard]] inline bool reads_conversations(const VisionOptions& options) {
  return options.chat_template != "none";
}

}  // namespace chiliad::spec
