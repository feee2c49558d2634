#include "chiliad/dataset/detail/draft.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace chiliad::dataset::detail {

using index::MediaType;

MediaType media_of(const std::string& extension) {
  constexpr std::array<std::string_view, 6> kImages{"jpg", "jpeg", "png", "webp", "gif", "bmp"};
  if (std::find(kImages.begin(), kImages.end(), extension) != kImages.end()) return MediaType::kImage;
  if (extension == "txt" || extension == "caption") return MediaType::kText;
  if (extension == "json") return MediaType::kJson;
  return MediaType::kOther;
}

std::string extension_of(const std::string& name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string::npos) return {};
  std::string extension = name.substr(dot + 1);
  for (char& c : extension) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return extension;
}

}  // namespace chiliad::dataset::detail
