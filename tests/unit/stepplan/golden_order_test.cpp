// The order is a stored format: checkpoints name places in it. Each line is what plan version 1 gave when it
// was written.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "chiliad/stepplan/plan.h"
#include "tests/support/document_index.h"
#include "tests/support/synthetic_index.h"

namespace chiliad::stepplan {
namespace {

index::Index pictures() {
  auto shards =
      test::synthetic_index(
          test::draw_sizes({{100, 100, 10}, {100, 170, 33}, {300, 110, 5}, {200, 120, 60}}, 2003, 5), 300, 7)
          .shards();
  shards[1].samples[3].flags |= index::kBadImage;
  for (size_t i = 0; i < 7; ++i)
    shards[2].samples[21 + i].flags |= index::kBadImage;  // a block without items
  shards[0].captions[5].language = index::language_code("de");
  shards[0].captions[6].language = 0;
  shards[3].parts[2 * 6].width = 100'000;
  return index::Index::from_shards({}, std::move(shards));
}

struct Golden {
  const char* name;
  void (*set)(spec::DataOptions&);
  PlanPart part;
  const char* digest;
};

void PrintTo(const Golden& golden, std::ostream* out) {
  *out << golden.name;
}

std::string digest_of(const Plan& plan) {
  Hasher hasher;
  hasher.add(plan.content_digest()).add(plan.steps_per_epoch());
  for (int64_t step = 0; step < 2 * plan.steps_per_epoch() + 3; ++step)
    hasher.add(plan.select(step, {}).digest());
  return hasher.digest().hex();
}

class GoldenOrderTest : public ::testing::TestWithParam<Golden> {};

TEST_P(GoldenOrderTest, StaysAsStored) {
  spec::DataOptions options;
  options.batch = 16;
  options.window_blocks = 9;
  GetParam().set(options);
  if (options.mode == "pack") {
    const auto index = test::document_index(1500, 900);
    EXPECT_EQ(digest_of(Plan(index, options, 11, test::document_tokens(index), {1, 2}, GetParam().part)),
              GetParam().digest);
    return;
  }
  const auto index = pictures();
  EXPECT_EQ(digest_of(Plan(index, options, 11, test::byte_tokens(index), {}, GetParam().part)),
            GetParam().digest);
}

INSTANTIATE_TEST_SUITE_P(
    Ledger, GoldenOrderTest,
    ::testing::Values(Golden{"Window", [](spec::DataOptions&) {}, PlanPart::kTraining,
                             "07cda7cefa8720ef8b3e124892868f9f"},
                      Golden{"Full", [](spec::DataOptions& o) { o.order = "full"; }, PlanPart::kTraining,
                             "51686fd7c8104ef6f6edd8622aedcecb"},
                      Golden{"Sequential", [](spec::DataOptions& o) { o.order = "sequential"; },
                             PlanPart::kTraining, "ef10037f25acb51d7aa64dc7193bd3d2"},
                      Golden{"Clusters", [](spec::DataOptions& o) { o.shape_clusters = 3; },
                             PlanPart::kTraining, "0936b540fc4eb966b7121349b55e6f21"},
                      Golden{"FullClusters",
                             [](spec::DataOptions& o) {
                               o.order = "full";
                               o.shape_clusters = 2;
                             },
                             PlanPart::kTraining, "ebba862a54b60f51ec9724aac25e6add"},
                      Golden{"Draws",
                             [](spec::DataOptions& o) {
                               o.flip = true;
                               o.crop = "random";
                               o.languages = {"en", "de"};
                             },
                             PlanPart::kTraining, "73e3f50d361552542a751deaf0e0bf0b"},
                      Golden{"NoCaptions", [](spec::DataOptions& o) { o.languages.clear(); },
                             PlanPart::kTraining, "f819e57d245239d572d92df76cdceeac"},
                      Golden{"Aspect", [](spec::DataOptions& o) { o.max_aspect_error = 0.2; },
                             PlanPart::kTraining, "3ffab0620061174cc00d460ba13cdbf0"},
                      Golden{"Limit", [](spec::DataOptions& o) { o.limit = 701; }, PlanPart::kTraining,
                             "4a3abc88f8ada1a3977f4c70f4faf9a1"},
                      Golden{"HeldOut",
                             [](spec::DataOptions& o) {
                               o.held_out = 53;
                               o.limit = 701;
                               o.shape_clusters = 2;
                             },
                             PlanPart::kTraining, "ccf616d13d426503d076cd2ce71ad1b8"},
                      Golden{"HeldOutPart",
                             [](spec::DataOptions& o) {
                               o.held_out = 53;
                               o.limit = 701;
                             },
                             PlanPart::kHeldOut, "66d609bcb23fe07007e19679dd8ec874"},
                      Golden{"Documents",
                             [](spec::DataOptions& o) {
                               o.mode = "pack";
                               o.sequence_length = 512;
                               o.languages.clear();
                               o.limit = 1200;
                               o.held_out = 20;
                             },
                             PlanPart::kTraining, "c65aac7284f5f8c173ed2775724e787e"}),
    [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace chiliad::stepplan
