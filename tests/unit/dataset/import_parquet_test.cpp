// Parquet files of tests/data/dataset/parquet (made by its make.py) as tars.
#include "chiliad/dataset/import_parquet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <stdexcept>

#include "chiliad/base/error.h"
#include "chiliad/dataset/bad_list.h"
#include "chiliad/dataset/detail/parquet_file.h"
#include "chiliad/dataset/detail/tar_reader.h"
#include "chiliad/io/file.h"
#include "tests/support/temp_dir.h"

namespace chiliad::dataset {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

fs::path data(const std::string& name) {
  return fs::path(CHILIAD_TEST_DATA) / "dataset/parquet" / name;
}

class ImportParquetTest : public ::testing::Test {
 protected:
  TarReport import(const std::string& source, const std::string& out = "built",
                   const Progress& progress = {}) {
    return import_parquet(source, folder_.path() / out, columns_, options_, progress);
  }
  std::string refusal(const std::string& source) {
    try {
      static_cast<void>(import(source));
    } catch (const InvalidInput& error) {
      return error.what();
    }
    return {};
  }
  /// Names and bytes of all members, tar after tar.
  std::map<std::string, std::string> members(const std::string& out = "built") const {
    std::map<std::string, std::string> found;
    for (const auto& entry : fs::directory_iterator(folder_.path() / out / "tars")) {
      const io::File file = io::File::open_read(entry.path());
      for (const auto& member : detail::list_tar(file).members) {
        std::string bytes(member.length, '\0');
        file.read_at(static_cast<int64_t>(member.offset), std::as_writable_bytes(std::span(bytes)));
        found[member.name] = bytes;
      }
    }
    return found;
  }
  std::string reasons(const std::string& out = "built") const {
    std::string text;
    const auto dropped = read_bad_list(folder_.path() / out / "dropped.jsonl");
    for (const BadSample& bad : dropped.value()) text += bad.key + " " + bad.reason + "\n";
    return text;
  }
  std::string copy(const std::string& name, const std::string& as) const {
    fs::copy_file(data(name), folder_.path() / as);
    return (folder_.path() / as).string();
  }

  test::TempDir folder_;
  ParquetColumns columns_;
  TarOptions options_;
};

TEST_F(ImportParquetTest, ReadsHuggingFacesImageColumn) {
  const auto report = import(data("hugging_face.parquet"));
  EXPECT_EQ(report.num_samples, 15);
  const auto found = members();
  EXPECT_EQ(found.at("000000000.txt"), "picture 0");
  EXPECT_EQ(found.at("000000019.txt"), "picture 19");
  EXPECT_EQ(found.at("000000019.png").substr(1, 3), "PNG");
  EXPECT_EQ(found.size(), 30U);
}

TEST_F(ImportParquetTest, EveryRowThatIsLeftOutHasAReason) {
  const auto report = import(data("hugging_face.parquet"));
  EXPECT_EQ(report.dropped, (std::map<std::string, int64_t>{{"image", 3}, {"caption", 2}}));
  EXPECT_THAT(reasons(),
              StartsWith("hugging_face.parquet:3 image: has no bytes, only the path elsewhere.png\n"
                         "hugging_face.parquet:4 image: is null\n"
                         "hugging_face.parquet:5 caption: has no caption\n"
                         "hugging_face.parquet:6 caption: has no caption\n"
                         "hugging_face.parquet:7 image: not an image that can be read"));
}

TEST_F(ImportParquetTest, ReadsDictionariesAndListsOfCaptions) {
  columns_ = {"jpg", "texts"};
  EXPECT_EQ(import(data("dictionaries.parquet")).num_samples, 2);
  const auto found = members();
  EXPECT_EQ(found.at("000000000.json"), R"({"caption":["a","b"]})");
  EXPECT_EQ(found.at("000000001.txt"), "c");
  EXPECT_EQ(reasons(),
            "dictionaries.parquet:2 image: is null\ndictionaries.parquet:3 caption: has no caption\n");
}

TEST_F(ImportParquetTest, ReadsFieldsInsideOfStructs) {
  columns_ = {"page.picture", "page.alt"};
  EXPECT_EQ(import(data("nested.parquet")).num_samples, 3);
  EXPECT_EQ(members().at("000000002.txt"), "alt 2");
  columns_ = {"page.picture.bytes", "a.b"};
  EXPECT_EQ(import(data("nested.parquet"), "again").num_samples, 3);
  EXPECT_EQ(members("again").at("000000000.txt"), "w");
}

TEST_F(ImportParquetTest, SaysWhichColumnsThereAre) {
  EXPECT_THAT(refusal(data("nested.parquet")),
              HasSubstr("the columns are page: struct<picture: struct<bytes"));
  columns_ = {"images", "a.b"};
  const std::string why = refusal(data("nested.parquet"));
  EXPECT_THAT(why, HasSubstr("images: list<"));
  EXPECT_THAT(why, HasSubstr("one a row, named images. Name it with --image-key"));
  columns_ = {"page.picture", "images"};
  EXPECT_THAT(refusal(data("nested.parquet")), HasSubstr("Name it with --caption-key"));
  EXPECT_FALSE(fs::exists(folder_.path() / "built"));
}

TEST_F(ImportParquetTest, ReadsFilesOfAFolderOrAPatternInOrder) {
  copy("hugging_face.parquet", "b.parquet");
  copy("one_group.parquet", "a.parquet");
  columns_.caption = "";
  EXPECT_TRUE(is_parquet(folder_.path()));
  EXPECT_TRUE(is_parquet((folder_.path() / "*.parquet").string()));
  EXPECT_FALSE(is_parquet(fs::path(CHILIAD_TEST_DATA) / "dataset/img2dataset"));
  EXPECT_EQ(import((folder_.path() / "?.parquet").string()).num_samples, 64 + 15);
  EXPECT_EQ(members().at("000000063.txt"), "row 63");
  EXPECT_EQ(members().at("000000064.txt"), "picture 0");
  EXPECT_THAT(refusal((folder_.path() / "z*.parquet").string()), HasSubstr("there is no file .parquet"));
}

TEST_F(ImportParquetTest, GoesOnAfterAnInterruptionWithTheSameBytes) {
  options_.tar_bytes = 4096;
  options_.threads = 1;
  static_cast<void>(import(data("one_group.parquet"), "whole"));
  const auto stop = [calls = 0](int64_t /*done*/, int64_t /*total*/) mutable {
    if (++calls == 3) throw std::runtime_error("stopped");
  };
  EXPECT_THROW(static_cast<void>(import(data("one_group.parquet"), "built", stop)), std::runtime_error);
  const auto report = import(data("one_group.parquet"));
  EXPECT_GT(report.tars_reused, 0);
  EXPECT_EQ(members(), members("whole"));
}

TEST_F(ImportParquetTest, AConditionAndSizesHoldAsForAnIndex) {
  options_.where = "width > 8";
  EXPECT_EQ(import(data("hugging_face.parquet")).dropped.at("where"), 15);
  options_.where.clear();
  options_.longest_side = 16;
  EXPECT_EQ(import(data("one_group.parquet"), "small").num_resized, 64);
}

// Damage

TEST_F(ImportParquetTest, ACutOrForeignFileIsRefused) {
  const std::string bytes = io::read_text(data("hugging_face.parquet"), 1 << 20);
  for (const auto& [name, text] :
       {std::pair<const char*, std::string>{"cut", bytes.substr(0, bytes.size() - 9)},
        {"empty", ""},
        {"text", "no parquet at all"},
        {"footer",
         bytes.substr(0, bytes.size() - 60) + std::string(52, 'x') + bytes.substr(bytes.size() - 8)}}) {
    const fs::path path = folder_.path() / (std::string(name) + ".parquet");
    io::write_atomic(path, text);
    EXPECT_THAT(refusal(path), HasSubstr("cannot be read as parquet")) << name;
  }
}

TEST_F(ImportParquetTest, ADamagedPageDropsTheRestOfItsRowGroup) {
  const std::string path = copy("one_group.parquet", "damaged.parquet");
  std::string bytes = io::read_text(path, 1 << 20);
  // Row 40's picture begins there; its page header ends right before.
  size_t at = 0;
  for (int i = 0; i <= 40; ++i) at = bytes.find("\x89PNG", at + 1);
  std::fill(bytes.begin() + static_cast<ptrdiff_t>(at) - 24, bytes.begin() + static_cast<ptrdiff_t>(at),
            '\xff');
  io::write_atomic(path, bytes);
  const auto report = import(path);
  EXPECT_EQ(report.num_samples, 32);  // whole batches of 16
  EXPECT_EQ(report.dropped.at("damaged"), 32);
  EXPECT_THAT(reasons(),
              HasSubstr("damaged.parquet:63 damaged: the row group up to row 63 cannot be read: "));
}

TEST_F(ImportParquetTest, NoByteOfAFileCanEndTheProgram) {
  const std::string bytes = io::read_text(data("dictionaries.parquet"), 1 << 20);
  columns_ = {"jpg", "texts"};
  for (size_t at = 0; at < bytes.size(); at += 7) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x41);
    const fs::path path = folder_.path() / "flipped.parquet";
    io::write_atomic(path, damaged);
    fs::remove_all(folder_.path() / "built");
    try {
      const auto report = import(path);
      EXPECT_LE(report.num_samples, 4);
    } catch (const Error&) {  // refused
    }
  }
}

TEST_F(ImportParquetTest, SaysHowToGetTheLibrary) {
  ::setenv("CHILIAD_PARQUET_LIBRARY", (folder_.path() / "gone.so").c_str(), 1);
  const std::string why = refusal(data("hugging_face.parquet"));
  ::unsetenv("CHILIAD_PARQUET_LIBRARY");
  EXPECT_THAT(why, HasSubstr("gone.so, which is not there. Run ./dev setup, then ./dev build"));
}

}  // namespace
}  // namespace chiliad::dataset
