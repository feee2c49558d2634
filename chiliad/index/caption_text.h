#pragma once

#include <string_view>

#include "chiliad/index/columns.h"
#include "chiliad/text/document_encoder.h"

namespace chiliad::index {

/// The text that a caption's stored bytes stand for, by the media type of its part: plain text as it is, the
/// document of a line, an unescaped JSON string or CSV field (both trimmed), the record of a conversation as
/// it is (text/conversation.h reads it). Bytes that are not UTF-8 stay in plain text and are U+FFFD in what
/// was unescaped. `refusal` says why the bytes are not of that form. Source: docs/formats/sidecar.md.
[[nodiscard]] text::LineDocument caption_text(MediaType media, std::string_view stored);

}  // namespace chiliad::index
