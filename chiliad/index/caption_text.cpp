#include "chiliad/index/caption_text.h"

#include "chiliad/text/stored_text.h"

namespace chiliad::index {

text::LineDocument caption_text(MediaType media, std::string_view stored) {
  switch (media) {
    case MediaType::kJson:
      return text::text_of_json_string(stored);
    case MediaType::kJsonLine:
      return text::document_of_line(stored);
    case MediaType::kCsv:
      return text::text_of_csv_field(stored);
    default:
      return {std::string(stored), ""};
  }
}

}  // namespace chiliad::index
