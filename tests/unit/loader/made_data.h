#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "chiliad/base/host_array.h"
#include "chiliad/index/index.h"
#include "chiliad/loader/loader.h"
#include "tests/support/temp_dir.h"

namespace chiliad::test {

/// Pictures with captions as loose files in a temporary folder, and their index.
class MadeData {
 public:
  explicit MadeData(int count);

  [[nodiscard]] const index::Index& index() const { return index_; }
  [[nodiscard]] std::filesystem::path picture_path(int i) const;
  [[nodiscard]] std::filesystem::path caption_path(int i) const;
  /// The picture as it was drawn: uint8 [H, W, 3].
  [[nodiscard]] static HostArray picture(int i);
  [[nodiscard]] static std::string caption(int i);
  /// Puts other bytes in a picture's place and, if `indexed`, their checksum into the index.
  void replace_picture(int i, const std::string& bytes, bool indexed);

 private:
  TempDir folder_;
  index::Index index_;
};

/// Everything that a consumer sees of a step, hashed.
[[nodiscard]] Digest content_of(const loader::RankStep& step);

}  // namespace chiliad::test
