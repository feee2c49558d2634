#pragma once

#include <string>
#include <vector>

#include "chiliad/index/index.h"

namespace chiliad::dataset {

/// A remote source as a user names it: a root, and the objects below it; none: all that the store lists.
struct RemoteSource {
  std::string root;
  std::vector<std::string> names{};
};

/// "s3://bucket/set" is all of it; an address that ends in .tar, .jsonl or .txt is one object, and
/// "{000..099}" in the last part of an address stands for numbers, "{a,b}" for words. Throws InvalidInput for
/// braces elsewhere or of another form, and for more than a million names.
[[nodiscard]] RemoteSource parse_remote_source(const std::string& address);

/// Throws InvalidInput where the data of `index` lies in a store: for what reads files.
void refuse_remote(const index::Index& index);

}  // namespace chiliad::dataset
