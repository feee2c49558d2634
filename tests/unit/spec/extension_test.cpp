// Run files whose libraries bring families and objectives; what a process without torch is told of them.
#include "chiliad/spec/extension.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "chiliad/base/error.h"
#include "chiliad/spec/extension_json.h"
#include "chiliad/spec/run_file.h"
#include "tests/support/temp_dir.h"

namespace chiliad::spec {
namespace {

using testing::HasSubstr;

LayerTable two_blocks(const ModelOptions& options, const OwnValues& own) {
  if (own.whole("inner") == 13) throw InvalidInput("inner", "expected another number than 13");
  LayerTable table = base_table(options);
  LayerDecl layer = extension_layer("twist", "twist", "backbone", options);
  add_linear_params(layer, "in", options.width, own.whole("inner"), TokensOf::kImage,
                    {.split = Split::kRows, .parts = 1});
  layer.reads = layer.writes = {"image"};
  costs_of(layer).image_image_width = 8.0;
  costs_of(layer).launches = 3.0;
  table.layers.insert(table.layers.end() - 1, layer);
  return table;
}

Extensions made_extensions() {
  auto family = std::make_shared<FamilyExtension>();
  family->name = "twisted";
  family->base = "pixel_dit";
  family->options = {{.name = "inner", .value = int64_t{16}, .min = 1, .max = 64, .help = "width"},
                     {.name = "deep", .value = false, .help = "more of it"}};
  family->table = two_blocks;
  auto objective = std::make_shared<ObjectiveExtension>();
  objective->name = "gentle";
  objective->base = "flow";
  objective->options = {{.name = "ease", .value = 0.5, .min = 0.0, .max = 1.0, .help = "how gentle"},
                        {.name = "shape", .value = std::string("round"), .choices = {"round", "square"}}};
  return {{family}, {objective}};
}

class ExtensionTest : public testing::Test {
 protected:
  ExtensionTest() {
    std::ofstream(folder_.path() / "libmine.so") << "library";
    set_extension_source([this](const ExtensionRequest& request) {
      libraries_ = request.libraries;
      return made_extensions();
    });
  }
  ~ExtensionTest() override { set_extension_source(nullptr); }

  [[nodiscard]] RunFile parse(const std::string& rest, const std::vector<std::string>& overrides = {}) const {
    return parse_run_file("version: 1\nextensions: [libmine.so]\ndata: {index: x}\n" + rest, "run.yaml",
                          "run", overrides, folder_.path());
  }
  [[nodiscard]] std::string error_of(const std::string& rest) const {
    try {
      static_cast<void>(parse(rest));
    } catch (const InvalidInput& error) {
      return error.what();
    }
    return "no error";
  }

  test::TempDir folder_;
  std::vector<std::string> libraries_;
};

TEST_F(ExtensionTest, PathsAreRelativeToTheRunFile) {
  const auto file = parse("");
  EXPECT_THAT(libraries_, testing::ElementsAre((folder_.path() / "libmine.so").string()));
  EXPECT_EQ(file.extensions, libraries_);
}

TEST_F(ExtensionTest, AFamilyHasItsBaseAndItsOwnOptions) {
  const auto file = parse("model: {inner: 32, family: twisted}\n");
  EXPECT_EQ(file.model.family, "pixel_dit");
  ASSERT_NE(file.model.extension, nullptr);
  EXPECT_EQ(file.model.extension->own.whole("inner"), 32);
  EXPECT_FALSE(file.model.extension->own.flag("deep"));
}

TEST_F(ExtensionTest, AnObjectiveHasItsOwnOptions) {
  const auto file = parse("objective: {kind: gentle, ease: 0.25, shape: square}\n");
  EXPECT_EQ(file.objective.kind, "flow");
  ASSERT_NE(file.objective.extension, nullptr);
  EXPECT_EQ(file.objective.extension->own.number("ease"), 0.25);
  EXPECT_EQ(file.objective.extension->own.text("shape"), "square");
}

TEST_F(ExtensionTest, OverridesChooseAndSetThem) {
  const auto file = parse("", {"model.family=twisted", "model.inner=7"});
  ASSERT_NE(file.model.extension, nullptr);
  EXPECT_EQ(file.model.extension->own.whole("inner"), 7);
}

TEST_F(ExtensionTest, AnOptionOfAFamilyThatIsNotUsedIsUnknown) {
  EXPECT_THAT(error_of("model: {inner: 32}\n"), HasSubstr("unknown key \"inner\" in section model"));
}

TEST_F(ExtensionTest, AMisspeltOptionNamesTheNearest) {
  EXPECT_THAT(error_of("model: {family: twisted, iner: 32}\n"), HasSubstr("Did you mean inner?"));
}

TEST_F(ExtensionTest, AMisspeltFamilyNamesTheNearest) {
  EXPECT_THAT(error_of("model: {family: twistd}\n"), HasSubstr("Did you mean twisted?"));
}

TEST_F(ExtensionTest, AValueOutOfRangeIsRefused) {
  EXPECT_THAT(error_of("objective: {kind: gentle, ease: 1.5}\n"),
              HasSubstr("objective.ease: expected a number in [0, 1], got \"1.5\""));
}

TEST_F(ExtensionTest, WhatTheFamilySaysOfItsOptionsIsTold) {
  EXPECT_THAT(error_of("model: {family: twisted, inner: 13}\n"),
              HasSubstr("run.yaml:4:17: model.family: inner: expected another number than 13"));
}

TEST_F(ExtensionTest, TheResolvedRunFileReadsBack) {
  const auto file = parse("model: {family: twisted, inner: 32}\nobjective: {kind: gentle}\n");
  const auto again = parse_run_file(to_yaml(file), "resolved", "run", {});
  EXPECT_EQ(to_yaml(again), to_yaml(file));
  EXPECT_TRUE(compare(file, again).empty());
}

TEST_F(ExtensionTest, OwnOptionsAreFixedOnResume) {
  const auto differences =
      compare(parse("model: {family: twisted, inner: 32}\n"), parse("model: {family: twisted}\n"));
  ASSERT_EQ(differences.size(), 1U);
  EXPECT_EQ(differences[0].key, "model.inner");
  EXPECT_FALSE(differences[0].free_on_resume);
}

TEST_F(ExtensionTest, AnotherFamilyIsADifference) {
  const auto differences = compare(parse("model: {family: twisted}\n"), parse(""));
  ASSERT_EQ(differences.size(), 1U);
  EXPECT_EQ(differences[0].old_value, "twisted");
  EXPECT_EQ(differences[0].new_value, "pixel_dit");
}

TEST_F(ExtensionTest, WorkIsCountedFromItsNumbers) {
  const auto table = make_layer_table(parse("model: {family: twisted}\n").model);
  const auto& layer = table.layers[table.layers.size() - 2];
  const Work work = layer.forward({.items = 2, .image_tokens = 10, .text_tokens = 3});
  EXPECT_EQ(work.linear_flops, 2.0 * 2 * 10 * 256 * 16);
  EXPECT_EQ(work.attention_flops, 4.0 * 2 * 10 * 10 * 8);
  EXPECT_EQ(work.launches, 3.0);
}

TEST_F(ExtensionTest, JsonCarriesLayersAndOptions) {
  const auto model = parse("model: {family: twisted}\n").model;
  const auto table = make_layer_table(model);
  const auto told = extensions_from_json(extensions_to_json(made_extensions(), &table));
  ASSERT_EQ(told.families.size(), 1U);
  EXPECT_EQ(extensions_to_json(told, &table), extensions_to_json(made_extensions(), &table));
  const auto layers = told.families[0]->table(model, {}).layers;
  ASSERT_EQ(layers.size(), table.layers.size());
  for (size_t i = 0; i < layers.size(); ++i) {
    EXPECT_EQ(layers[i].num_params(), table.layers[i].num_params());
    const BatchShape shape{.items = 2, .image_tokens = 10, .text_tokens = 3};
    EXPECT_EQ(layers[i].forward(shape).flops(), table.layers[i].forward(shape).flops());
  }
}

TEST(NoExtensionSourceTest, AProcessThatCannotLoadThemSaysSo) {
  const test::TempDir folder;
  std::ofstream(folder.path() / "libmine.so") << "library";
  try {
    static_cast<void>(parse_run_file("version: 1\nextensions: [libmine.so]\ndata: {index: x}\n", "run.yaml",
                                     "run", {}, folder.path()));
    FAIL();
  } catch (const InvalidInput& error) {
    EXPECT_THAT(error.what(), HasSubstr("this program cannot load libraries"));
  }
}

}  // namespace
}  // namespace chiliad::spec
