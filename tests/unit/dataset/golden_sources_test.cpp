// Small data sets of each layout as their makers write them, against what reading them gave before.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "chiliad/base/json_text.h"
#include "chiliad/dataset/build_index.h"
#include "chiliad/index/caption_text.h"
#include "chiliad/io/file.h"
#include "tests/support/temp_dir.h"

namespace chiliad::dataset {
namespace {

using Json = nlohmann::ordered_json;

const std::filesystem::path kSources = std::filesystem::path(CHILIAD_TEST_DATA) / "dataset";

/// Everything of an index that does not depend on where the source lies.
Json description(const std::filesystem::path& folder, const IndexReport& report) {
  const auto index = index::Index::open(folder);
  Json page{{"layout", index.manifest().layout}, {"digest", index.manifest().digest.hex()}};
  for (int64_t i = 0; i < index.num_samples(); ++i) {
    const auto held = index.shard_of(i);
    const index::Shard& shard = *held;
    const index::Sample& sample = index.sample(i);
    Json entry{{"key", index.key(i)},
               {"flags", sample.flags},
               {"parts", Json::array()},
               {"captions", Json::array()}};
    for (uint32_t p = sample.first_part; p < sample.first_part + sample.num_parts; ++p) {
      const index::Part& part = shard.parts[p];
      entry["parts"].push_back(
          {static_cast<int>(part.media), part.offset, part.length, part.width, part.height});
    }
    for (uint32_t c = sample.first_caption; c < sample.first_caption + sample.num_captions; ++c) {
      const index::Caption& caption = shard.captions[c];
      const index::Part& part = shard.parts[caption.part];
      const std::string file = io::read_text(index.part_path(shard, part), 1 << 20);
      entry["captions"].push_back(
          index::caption_text(part.media, file.substr(part.offset + caption.offset, caption.length)).text);
    }
    page["samples"].push_back(std::move(entry));
  }
  page["bad"] = Json::array();
  for (const BadSample& bad : report.bad) page["bad"].push_back({bad.key, bad.file, bad.reason});
  return page;
}

struct Source {
  const char* name;
  const char* path;
  const char* images;
};

class GoldenSourceTest : public ::testing::TestWithParam<Source> {};

TEST_P(GoldenSourceTest, ReadsAsBefore) {
  const test::TempDir folder;
  IndexOptions options;
  if (*GetParam().images != '\0') options.images = kSources / GetParam().images;
  const auto report = build_index(kSources / GetParam().path, folder.path() / "index", options, {});
  const Json made = description(folder.path() / "index", report);
  const auto golden = kSources / "expected" / (std::string(GetParam().name) + ".json");
  const char* make = std::getenv("CHILIAD_MAKE_GOLDEN");  // then look at what changed, and commit it
  if (make != nullptr) io::write_atomic(golden, json_text(made, 1) + "\n");
  EXPECT_EQ(json_text(made, 1) + "\n", io::read_text(golden, 1 << 20));
}

INSTANTIATE_TEST_SUITE_P(Sources, GoldenSourceTest,
                         ::testing::Values(Source{"img2dataset", "img2dataset", ""},
                                           Source{"imagefolder", "imagefolder", ""},
                                           Source{"csv", "csv/set.csv", "."}, Source{"kohya", "kohya", ""},
                                           Source{"llava", "llava/train.json", "llava/images"}),
                         [](const auto& source) { return std::string(source.param.name); });

}  // namespace
}  // namespace chiliad::dataset
