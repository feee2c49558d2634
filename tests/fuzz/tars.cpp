// A tar from foreign hands, all the way to the columns of an index.
#include "chiliad/dataset/detail/fill_shard.h"
#include "chiliad/dataset/detail/webdataset.h"
#include "tests/fuzz/input_file.h"

namespace chiliad::fuzz {
namespace {

void run(const uint8_t* data, size_t size) {
  const InputFile file(data, size);
  dataset::IndexOptions options;
  options.threads = 1;
  accept_refusals([&] {
    auto draft = dataset::detail::draft_tar_shard("/", {file.name(), static_cast<int64_t>(size), 0});
    for (const auto& sample : draft.samples) {
      CHILIAD_CHECK(!sample.parts.empty());
      for (const auto& part : sample.parts) CHILIAD_CHECK_LE(part.offset + part.length, size);
    }
    (void)dataset::detail::fill_shard("/", std::move(draft), options, [](int64_t) {});
  });
}

}  // namespace
}  // namespace chiliad::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  chiliad::fuzz::run(data, size);
  return 0;
}
