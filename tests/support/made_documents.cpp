#include "tests/support/made_documents.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "chiliad/base/json_text.h"
#include "chiliad/dataset/build_index.h"
#include "chiliad/io/file.h"

namespace chiliad::test {

MadeDocuments::MadeDocuments(int count) : encoder_(text::DocumentEncoder::open("", "")) {
  std::filesystem::create_directories(source().parent_path());
  std::string lines;
  for (int i = 0; i < count; ++i) lines += json_text(nlohmann::json{{"text", document(i)}}) + "\n";
  io::write_atomic(source(), lines);
  const auto out = folder_.path() / "index";
  (void)dataset::build_index(source(), out, {}, {});
  index_ = index::Index::open(out);
  (void)dataset::build_document_columns(index_, *encoder_, {});
}

std::string MadeDocuments::document(int i) {
  return fmt::format("document {}\n{}", i, std::string(static_cast<size_t>(i * 7 % 61), 'x'));
}

}  // namespace chiliad::test
