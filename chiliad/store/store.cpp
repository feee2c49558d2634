#include "chiliad/store/store.h"

namespace chiliad::store {

bool is_remote(std::string_view root) {
  return root.starts_with("s3://") || root.starts_with("http://") || root.starts_with("https://");
}

bool is_plain_name(std::string_view name) {
  while (true) {
    const size_t slash = name.find('/');
    const std::string_view part = name.substr(0, slash);
    if (part.empty() || part == "." || part == ".." || part.find('\0') != std::string_view::npos)
      return false;
    if (slash == std::string_view::npos) return true;
    name.remove_prefix(slash + 1);
  }
}

}  // namespace chiliad::store
