#include "chiliad/weights/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "chiliad/base/error.h"
#include "chiliad/base/rng.h"
#include "chiliad/weights/detail/header.h"
#include "tests/support/temp_dir.h"

namespace chiliad::weights {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// b stands before a, so that the given order is seen to count.
const std::string kB = "0123456789abcdefghijklmn";
const std::string kA = "ABCDEFGHIJKL";
std::vector<TensorBytes> three_tensors() {
  return {{{"b", DType::kI64, {3}}, bytes_of(kB)},
          {{"layers.0/a \"x\" \u00e9", DType::kF32, {3, 1}}, bytes_of(kA)},
          {{"none", DType::kBF16, {0, 5}}, {}}};
}

class SafetensorsTest : public testing::Test {
 protected:
  SafetensorsLayout write(std::span<const TensorBytes> tensors, const Metadata& metadata,
                          int64_t alignment = 8) {
    auto file = io::File::create(path_);
    auto layout = write_safetensors(file, tensors, metadata, alignment);
    file.close();
    return layout;
  }
  void write_raw(const std::string& content) {
    auto file = io::File::create(path_);
    file.write(content);
    file.close();
  }
  // A file of `json` as its header and `data_bytes` bytes of data.
  void write_header(const std::string& json, size_t data_bytes) {
    std::string length(8, '\0');
    for (size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(json.size() >> (8 * i) & 0xFF);
    write_raw(length + json + std::string(data_bytes, 'x'));
  }
  [[nodiscard]] std::string content() const { return io::read_text(path_, 1 << 20); }
  [[nodiscard]] std::string error() const {
    try {
      (void)SafetensorsFile::open(path_);
    } catch (const CorruptData& corrupt) {
      return corrupt.what();
    }
    return "no error";
  }

  test::TempDir dir_;
  fs::path path_ = dir_.path() / "w.safetensors";
};

std::string read_text(const SafetensorsFile& file, const std::string& name) {
  std::string text(static_cast<size_t>(file.find(name)->num_bytes()), '\0');
  file.read(name, std::as_writable_bytes(std::span(text)));
  return text;
}

TEST_F(SafetensorsTest, ReadsBackWhatWasWritten) {
  write(three_tensors(), {{"format", "pt"}, {"step", "12"}});
  const auto file = SafetensorsFile::open(path_);
  EXPECT_EQ(file.metadata(), (Metadata{{"format", "pt"}, {"step", "12"}}));
  ASSERT_EQ(file.tensors().size(), 3u);
  for (const TensorBytes& tensor : three_tensors()) {
    const TensorEntry* entry = file.find(tensor.spec.name);
    ASSERT_NE(entry, nullptr) << tensor.spec.name;
    EXPECT_EQ(entry->dtype, tensor.spec.dtype);
    EXPECT_EQ(entry->shape, tensor.spec.shape);
    EXPECT_TRUE(std::ranges::equal(bytes_of(read_text(file, tensor.spec.name)), tensor.bytes));
  }
}

TEST_F(SafetensorsTest, KeepsTheGivenOrder) {
  write(three_tensors(), {});
  EXPECT_EQ(SafetensorsFile::open(path_).tensors()[0].name, "b");
}

TEST_F(SafetensorsTest, LayoutIsWhatTheReaderFinds) {
  const auto layout = write(three_tensors(), {{"a", "b"}});
  EXPECT_EQ(SafetensorsFile::open(path_).tensors(), layout.tensors);
  EXPECT_EQ(fs::file_size(path_), static_cast<uintmax_t>(layout.file_bytes));
  EXPECT_EQ(content().substr(0, layout.header.size()), layout.header);
}

TEST_F(SafetensorsTest, SameInputSameBytes) {
  write(three_tensors(), {{"x", "1"}, {"a", "2"}});
  const std::string first = content();
  write(three_tensors(), {{"a", "2"}, {"x", "1"}});
  EXPECT_EQ(content(), first);
}

TEST_F(SafetensorsTest, DataIsAligned) {
  for (const int64_t alignment : {8, 64, 512, 4096}) {
    write(three_tensors(), {}, alignment);
    EXPECT_EQ(SafetensorsFile::open(path_).data_start() % alignment, 0) << alignment;
  }
}

TEST_F(SafetensorsTest, ReadsAPart) {
  write(three_tensors(), {});
  const auto file = SafetensorsFile::open(path_);
  std::string part(4, '\0');
  file.read_part(*file.find("b"), 10, std::as_writable_bytes(std::span(part)));
  EXPECT_EQ(part, "abcd");
}

TEST_F(SafetensorsTest, PartPastTheEndIsOurBug) {
  write(three_tensors(), {});
  const auto file = SafetensorsFile::open(path_);
  std::string part(15, '\0');
  EXPECT_THROW(file.read_part(*file.find("b"), 10, std::as_writable_bytes(std::span(part))), InternalError);
}

TEST_F(SafetensorsTest, MissingTensorIsNamed) {
  write(three_tensors(), {});
  const auto file = SafetensorsFile::open(path_);
  EXPECT_EQ(file.find("c"), nullptr);
  EXPECT_THROW(file.read("c", {}), CorruptData);
}

TEST_F(SafetensorsTest, NoTensorsNoData) {
  write({}, {});
  EXPECT_TRUE(SafetensorsFile::open(path_).tensors().empty());
}

TEST_F(SafetensorsTest, ScalarHasOneElement) {
  const std::string four = "abcd";
  write(std::vector<TensorBytes>{{{"s", DType::kF32, {}}, bytes_of(four)}}, {});
  EXPECT_EQ(read_text(SafetensorsFile::open(path_), "s"), four);
}

TEST_F(SafetensorsTest, CutAnywhereIsRefused) {
  write(three_tensors(), {{"format", "pt"}});
  const std::string whole = content();
  for (size_t length = 0; length < whole.size(); ++length) {
    write_raw(whole.substr(0, length));
    EXPECT_THAT(error(), HasSubstr("w.safetensors: ")) << "cut to " << length;
  }
}

TEST_F(SafetensorsTest, LongerFileIsRefused) {
  write(three_tensors(), {});
  write_raw(content() + "x");
  EXPECT_THAT(error(), HasSubstr("expected the file to end with its last tensor, got 1 bytes after it"));
}

// The header of `layout` behind its length, with `text` in its place.
std::vector<TensorEntry> parse_as(const SafetensorsLayout& layout, const std::string& text) {
  const auto data_start = static_cast<int64_t>(layout.header.size());
  return detail::parse_header(text, data_start, layout.file_bytes - data_start, "w.safetensors").tensors;
}

SafetensorsLayout layout_of_three() {
  std::vector<TensorSpec> specs;
  for (const TensorBytes& tensor : three_tensors()) specs.push_back(tensor.spec);
  return plan_safetensors(specs, {{"format", "pt"}});
}

// A flipped bit may make another name or another text of metadata, for the format has no checksum. It must
// never move, retype or reshape a tensor that has bytes.
TEST(SafetensorsHeaderTest, FlippedBitNeverMovesATensor) {
  const auto layout = layout_of_three();
  const std::string sound = layout.header.substr(8);
  int num_refused = 0;
  for (size_t bit = 0; bit < sound.size() * 8; ++bit) {
    std::string damaged = sound;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    try {
      auto tensors = parse_as(layout, damaged);
      ASSERT_EQ(tensors.size(), layout.tensors.size());
      for (size_t i = 0; i < tensors.size(); ++i) {
        tensors[i].name = layout.tensors[i].name;
        if (tensors[i].num_bytes() == 0) tensors[i].shape = layout.tensors[i].shape;  // [0, 4] for [0, 5]
        EXPECT_EQ(tensors[i], layout.tensors[i]) << "bit " << bit;
      }
    } catch (const CorruptData&) {
      ++num_refused;
    }
  }
  EXPECT_GT(num_refused, static_cast<int>(sound.size()) * 4);
}

TEST_F(SafetensorsTest, FlippedBitOfTheLengthIsRefused) {
  write(three_tensors(), {});
  const std::string whole = content();
  for (size_t bit = 0; bit < 64; ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    write_raw(damaged);
    EXPECT_THAT(error(), HasSubstr("w.safetensors: ")) << bit;
  }
}

// Bytes of the header replaced at random: refused as damaged, or a file whose tensors still cover its bytes.
TEST(SafetensorsHeaderTest, DamagedTextIsReadOrRefused) {
  const auto layout = layout_of_three();
  const std::string sound = layout.header.substr(8);
  const std::string bytes = std::string(" \n:-[]{},\"\\0a9e\xff") + '\0';
  Rng rng({20261129});
  for (int i = 0; i < 3000; ++i) {
    std::string damaged = sound;
    for (int edits = 0; edits < 3; ++edits) {
      damaged[rng.next_u32() % damaged.size()] = bytes[rng.next_u32() % bytes.size()];
    }
    try {
      EXPECT_EQ(parse_as(layout, damaged).back().end, layout.file_bytes);
    } catch (const CorruptData& error) {
      EXPECT_THAT(error.what(), HasSubstr("w.safetensors: "));
    }
  }
}

struct BadHeader {
  const char* name;
  std::string json;
  size_t data_bytes;
  const char* message;
};
void PrintTo(const BadHeader& bad, std::ostream* out) {
  *out << bad.name;
}

class BadHeaderTest : public SafetensorsTest, public testing::WithParamInterface<BadHeader> {};

TEST_P(BadHeaderTest, NamesFileAndCause) {
  write_header(GetParam().json, GetParam().data_bytes);
  EXPECT_THAT(error(), HasSubstr("w.safetensors: "));
  EXPECT_THAT(error(), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Headers, BadHeaderTest,
    testing::Values(
        BadHeader{"list", "[1]", 0, "header: expected JSON beginning with {"},
        BadHeader{"blank", " {}", 0, "header: expected JSON beginning with {"},
        BadHeader{"newline", "{}\n", 0, "padded with spaces"},
        BadHeader{"nul", std::string("{}\0\0", 4), 0, "padded with spaces"},
        BadHeader{"innernul", std::string("{\0}", 3), 0, "got a NUL byte at byte offset 1"},
        BadHeader{"nojson", "{nonsense}", 0, "header: expected JSON, got other bytes at byte offset"},
        BadHeader{"twoobjects", "{} {}", 0, "header: expected JSON, got other bytes"},
        BadHeader{"latin", "{\"\xff\":1}", 0, "header: expected UTF-8"},
        BadHeader{"twice", R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{}})", 1,
                  "\"a\" stands twice"},
        BadHeader{"escaped", R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"\u0061":{}})", 1,
                  "stands twice"},
        BadHeader{"fieldtwice", R"({"a":{"dtype":"U8","dtype":"I8"}})", 1, "\"dtype\" stands twice in \"a\""},
        BadHeader{"number", R"({"a":1})", 0, "tensor \"a\": expected an object"},
        BadHeader{"dtype", R"({"a":{"dtype":"F33","shape":[1],"data_offsets":[0,1]}})", 1, "got \"F33\""},
        BadHeader{"nodtype", R"({"a":{"shape":[1],"data_offsets":[0,1]}})", 1, "expected a dtype, got none"},
        BadHeader{"noshape", R"({"a":{"dtype":"U8","data_offsets":[0,1]}})", 1, "expected a shape, got none"},
        BadHeader{"nooffsets", R"({"a":{"dtype":"U8","shape":[1]}})", 1, "expected two data_offsets"},
        BadHeader{"oneoffset", R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0]}})", 1,
                  "expected two data_offsets"},
        BadHeader{"threeoffsets", R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1,2]}})", 1,
                  "got more"},
        BadHeader{"unknown", R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":1}})", 1,
                  "got \"x\""},
        BadHeader{"shapetext", R"({"a":{"dtype":"U8","shape":"1","data_offsets":[0,1]}})", 1,
                  "shape: expected a list"},
        BadHeader{"shapenested", R"({"a":{"dtype":"U8","shape":[[1]],"data_offsets":[0,1]}})", 1,
                  "expected at most 3 levels"},
        BadHeader{"fraction", R"({"a":{"dtype":"U8","shape":[1.0],"data_offsets":[0,1]}})", 1,
                  "shape: expected whole"},
        BadHeader{"negative", R"({"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}})", 1,
                  "shape: expected whole"},
        BadHeader{"huge", R"({"a":{"dtype":"U8","shape":[9223372036854775808],"data_offsets":[0,1]}})", 1,
                  "2^63"},
        BadHeader{"product", R"({"a":{"dtype":"U8","shape":[8589934592,8589934592],"data_offsets":[0,1]}})",
                  1, "expected a size below 2^63"},
        BadHeader{"bytesproduct",
                  R"({"a":{"dtype":"F64","shape":[2305843009213693952],"data_offsets":[0,0]}})", 0,
                  "expected a size below 2^63"},
        BadHeader{"size", R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4,
                  "expected 8 bytes for F32 [2], got 4"},
        BadHeader{"reversed", R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,0]}})", 1,
                  "expected begin <= end"},
        BadHeader{"pastend", R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", 1,
                  "within the 1 bytes of data"},
        BadHeader{"hole", R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})", 2, "a hole"},
        BadHeader{
            "overlap",
            R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
            3, "tensor \"b\": expected bytes of its own from 2, got an overlap from 1"},
        BadHeader{"metadatanumber", R"({"__metadata__":{"step":1}})", 0,
                  "__metadata__: \"step\": expected text"},
        BadHeader{"metadatalist", R"({"__metadata__":[]})", 0, "__metadata__: expected an object"},
        BadHeader{"metadatanested", R"({"__metadata__":{"a":{}}})", 0, "__metadata__: \"a\": expected text"},
        BadHeader{"metadatatwice", R"({"__metadata__":{"a":"1","a":"2"}})", 0, "\"a\" stands twice"}),
    [](const auto& test) { return std::string(test.param.name); });

TEST_F(SafetensorsTest, ManyAxesAreRefused) {
  std::string axes = "1";
  for (int i = 0; i < 40; ++i) axes += ",1";
  write_header(R"({"a":{"dtype":"U8","shape":[)" + axes + R"(],"data_offsets":[0,1]}})", 1);
  EXPECT_THAT(error(), HasSubstr("shape: expected at most 32 axes"));
}

TEST_F(SafetensorsTest, DeepNestingIsRefused) {
  write_header("{\"a\":" + std::string(100000, '[') + "}", 0);
  EXPECT_THAT(error(), HasSubstr("tensor \"a\": expected an object"));
}

TEST_F(SafetensorsTest, LengthAboveTheCapIsRefused) {
  write_raw(std::string("\xff\xff\xff\xff\xff\xff\xff\xff", 8) + "{}");
  EXPECT_THAT(error(),
              HasSubstr("header: expected at most 100000000 bytes, got a length of 18446744073709551615"));
}

TEST_F(SafetensorsTest, MissingFileIsInvalidInput) {
  EXPECT_THROW((void)SafetensorsFile::open(dir_.path() / "none"), InvalidInput);
}

TEST(SafetensorsLayoutTest, RefusesNamesThatCannotBeStored) {
  const auto plan = [](const std::vector<std::string>& names) {
    std::vector<TensorSpec> specs;
    for (const auto& name : names) specs.push_back({name, DType::kU8, {1}});
    return plan_safetensors(specs, {});
  };
  EXPECT_THROW((void)plan({"a", "a"}), InvalidInput);
  EXPECT_THROW((void)plan({"__metadata__"}), InvalidInput);
  EXPECT_THROW((void)plan({"\xff"}), InvalidInput);
}

}  // namespace
}  // namespace chiliad::weights
