#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "chiliad/index/index.h"
#include "chiliad/text/document_encoder.h"
#include "tests/support/temp_dir.h"

namespace chiliad::test {

/// Documents in a .jsonl in a temporary folder, their index with token columns, and an encoder of bytes.
class MadeDocuments {
 public:
  explicit MadeDocuments(int count);

  [[nodiscard]] const index::Index& index() const { return index_; }
  [[nodiscard]] const std::shared_ptr<const text::DocumentEncoder>& encoder() const { return encoder_; }
  [[nodiscard]] std::filesystem::path source() const { return folder_.path() / "source" / "a.jsonl"; }
  [[nodiscard]] static std::string document(int i);

 private:
  TempDir folder_;
  std::shared_ptr<const text::DocumentEncoder> encoder_;  // shared with loaders
  index::Index index_;
};

}  // namespace chiliad::test
