#include <gtest/gtest.h>

#include <cstdlib>

#include "chiliad/loader/loader.h"
#include "tests/support/document_index.h"
#include "tests/support/made_documents.h"

namespace chiliad::loader {
namespace {

/// The audit of rows: each target is the token that follows in the document.
bool targets_follow() {
  const test::MadeDocuments data(30);
  spec::DataOptions options;
  options.mode = "pack";
  options.batch = 10;
  const text::DocumentEncoder& encoder = *data.encoder();
  const stepplan::Plan plan(data.index(), options, 1, stepplan::column_counts(data.index(), encoder.digest()),
                            encoder.digest());
  LoaderOptions loader;
  loader.pack.max_tokens = options.sequence_length;
  loader.pack.row_work = test::row_work();
  loader.documents = data.encoder();
  loader.sequence_length = options.sequence_length;
  Loader loading(data.index(), plan, {}, 0, 1, loader);
  for (const Batch& batch : loading.next().slots) {
    for (size_t d = 0; d < batch.items.size(); ++d) {
      const auto ids = encoder.encode(test::MadeDocuments::document(static_cast<int>(batch.items[d].sample)));
      for (size_t i = 0; i + 1 < ids.size(); ++i) {
        const size_t at = static_cast<size_t>(batch.cu_seqlens[d]) + i;
        if (batch.targets.as<int32_t>()[at] != ids[i + 1]) return false;
      }
    }
  }
  return true;
}

TEST(RowsMutantTest, AuditCatchesTargetsThatAreNotShifted) {
  ASSERT_TRUE(targets_follow());
  setenv("CHILIAD_PLANTED_BUG", "targets_not_shifted", 1);
  EXPECT_FALSE(targets_follow());
  unsetenv("CHILIAD_PLANTED_BUG");
}

}  // namespace
}  // namespace chiliad::loader
