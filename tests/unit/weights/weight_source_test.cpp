#include "chiliad/weights/weight_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "chiliad/base/error.h"
#include "tests/support/temp_dir.h"

namespace chiliad::weights {
namespace {

using testing::HasSubstr;

class WeightSourceTest : public testing::Test {
 protected:
  void write(const std::string& file_name, const std::string& tensor, const std::string& data) {
    auto file = io::File::create(dir_.path() / file_name);
    write_safetensors(file,
                      std::vector<TensorBytes>{{{tensor, DType::kU8, {static_cast<int64_t>(data.size())}},
                                                std::as_bytes(std::span(data))}},
                      {});
    file.close();
  }
  [[nodiscard]] static std::string read(const WeightSource& source, const std::string& name) {
    std::string text(static_cast<size_t>(source.find(name)->num_bytes()), '\0');
    source.read(name, std::as_writable_bytes(std::span(text)));
    return text;
  }
  [[nodiscard]] std::string refusal() const {
    try {
      (void)WeightSource::open(dir_.path());
    } catch (const InvalidInput& error) {
      return error.what();
    }
    return "";
  }

  test::TempDir dir_;
};

TEST_F(WeightSourceTest, ReadsAFolderWithOneFile) {
  write("diffusion_pytorch_model.safetensors", "a", "123");
  EXPECT_EQ(read(WeightSource::open(dir_.path()), "a"), "123");
}

TEST_F(WeightSourceTest, ReadsAFileOfAnyName) {
  write("ema.safetensors", "a", "123");
  EXPECT_EQ(read(WeightSource::open(dir_.path() / "ema.safetensors"), "a"), "123");
}

TEST_F(WeightSourceTest, ListsTheTensorsOfAllShards) {
  write("one.safetensors", "a", "123");
  write("two.safetensors", "b", "45");
  io::write_atomic(dir_.path() / "model.safetensors.index.json",
                   R"({"weight_map":{"a":"one.safetensors","b":"two.safetensors"}})");
  const auto source = WeightSource::open(dir_.path());
  EXPECT_EQ(source.tensors().size(), 2u);
  EXPECT_EQ(read(source, "b"), "45");
  EXPECT_EQ(source.find("c"), nullptr);
}

TEST_F(WeightSourceTest, EmptyFolderIsRefused) {
  EXPECT_THAT(refusal(), HasSubstr("expected model.safetensors"));
}

TEST_F(WeightSourceTest, PickledWeightsAreNamed) {
  io::write_atomic(dir_.path() / "pytorch_model.bin", "x");
  EXPECT_THAT(refusal(), HasSubstr("got pytorch_model.bin. Pickled files are not read"));
}

}  // namespace
}  // namespace chiliad::weights
