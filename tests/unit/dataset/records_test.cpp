// Reading of JSON lists, lines and CSV, and the places of strings in them.
#include "chiliad/dataset/detail/records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "chiliad/base/error.h"
#include "chiliad/base/rng.h"
#include "chiliad/dataset/detail/json_text.h"
#include "tests/unit/dataset/source_tree.h"

namespace chiliad::dataset::detail {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Read {
  std::string text;
  std::string problem;
};

class RecordsTest : public ::testing::Test {
 protected:
  std::vector<Read> list(const std::string& text) {
    tree_.add("a.json", text);
    return read([&](const io::File& file, const OnRecord& on) { read_json_list(file, on); }, "a.json", text);
  }
  std::vector<Read> lines(const std::string& text) {
    tree_.add("a.jsonl", text);
    return read([&](const io::File& file, const OnRecord& on) { read_lines(file, on); }, "a.jsonl", text);
  }
  std::string list_refusal(const std::string& text) {
    try {
      list(text);
    } catch (const InvalidInput& error) {
      return error.what();
    }
    return {};
  }
  /// Fields of all rows; a problem is a row of its text.
  std::vector<std::vector<std::string>> rows(const std::string& text, char separator = ',') {
    tree_.add("a.csv", text);
    std::vector<std::vector<std::string>> found;
    read_csv(io::File::open_read(tree_.source() / "a.csv"), separator,
             [&](const Record& row, const std::vector<CsvField>& fields) {
               std::vector<std::string> texts;
               if (!row.problem.empty()) texts.push_back(row.problem);
               if (row.problem.empty()) {
                 EXPECT_EQ(text.substr(row.offset, row.text.size()), row.text);
                 for (const CsvField& field : fields)
                   texts.emplace_back(row.text.substr(field.offset, field.length));
               }
               found.push_back(std::move(texts));
             });
    return found;
  }

 private:
  template <typename Reader>
  std::vector<Read> read(const Reader& reader, const std::string& name, const std::string& text) {
    std::vector<Read> found;
    reader(io::File::open_read(tree_.source() / name), [&](const Record& record) {
      if (record.problem.empty()) {
        EXPECT_EQ(text.substr(record.offset, record.text.size()), record.text) << "offset";
      }
      found.push_back({std::string(record.text), record.problem});
    });
    return found;
  }

  SourceTree tree_;
};

TEST_F(RecordsTest, FindsTheBytesOfEachRecord) {
  const auto found = list(" [ {\"a\": [1, {\"b\": \"}\"}]},\n{} , {\"c\": \"\\\"{\"} ]\n");
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].text, "{\"a\": [1, {\"b\": \"}\"}]}");
  EXPECT_EQ(found[1].text, "{}");
  EXPECT_EQ(found[2].text, "{\"c\": \"\\\"{\"}");
}

TEST_F(RecordsTest, KeepsPlacesBehindBytesThatAreNotUtf8) {
  const auto found = list("[{\"a\": \"caf\xE9 \xE2\x82\"}, {\"b\": \"\\ud83d\"}, {\"c\": 1}]");
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[2].text, "{\"c\": 1}");
}

TEST_F(RecordsTest, PassesOverAByteOrderMark) {
  EXPECT_EQ(list("\xEF\xBB\xBF[{\"a\": 1}]").size(), 1U);
  EXPECT_EQ(lines("\xEF\xBB\xBF{\"a\": 1}\n").front().text, "{\"a\": 1}");
}

TEST_F(RecordsTest, NamesEntriesThatAreNoObjects) {
  const auto found = list("[1, {}, \"x\", [2, 3], null]");
  ASSERT_EQ(found.size(), 5U);
  EXPECT_EQ(found[0].problem, "expected an object, got a number");
  EXPECT_EQ(found[3].problem, "expected an object, got a list");
}

TEST_F(RecordsTest, RefusesAListThatBreaksOff) {
  EXPECT_THAT(list_refusal("[{\"a\": 1}, {\"b\": "), HasSubstr("breaks off behind record 2"));
}

TEST_F(RecordsTest, RefusesAListThatIsNoJson) {
  EXPECT_THAT(list_refusal("[{\"a\": 1} {\"b\": 2}]"), HasSubstr("is no JSON behind record 1"));
}

TEST_F(RecordsTest, RefusesAnObjectInPlaceOfTheList) {
  EXPECT_THAT(list_refusal("{\"data\": []}"), HasSubstr("expected a list of records, got an object"));
}

TEST_F(RecordsTest, RefusesDeepNesting) {
  EXPECT_THAT(list_refusal("[" + std::string(2'000'000, '[')), HasSubstr("nested deeper than 64"));
}

TEST_F(RecordsTest, KnowsARecordAcrossPiecesOfTheFile) {
  const std::string record = "{\"a\": \"" + std::string(3 << 20, 'x') + "\"}";
  const auto found = list("[{}, " + record + ", {}]");
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[1].text, record);
}

TEST_F(RecordsTest, ReportsARecordThatIsTooLong) {
  const auto found = list("[{\"a\": \"" + std::string(17 << 20, 'x') + "\"}, {}]");
  ASSERT_EQ(found.size(), 2U);
  EXPECT_THAT(found[0].problem, HasSubstr("expected at most 16777216"));
  EXPECT_EQ(found[1].text, "{}");
}

TEST_F(RecordsTest, EndsLinesAtLineFeedsOnly) {
  const auto found = lines("{\"a\": \"\xE2\x80\xA8\xC2\x85\"}\r\n\n  \t\n {\"b\": 1}");
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].text, "{\"a\": \"\xE2\x80\xA8\xC2\x85\"}");
  EXPECT_EQ(found[1].text, "{\"b\": 1}");
}

TEST_F(RecordsTest, SplitsRowsAtSeparators) {
  EXPECT_THAT(rows("a,b\r\n1,\n\n,x y\n"),
              ElementsAre(ElementsAre("a", "b"), ElementsAre("1", ""), ElementsAre("", "x y")));
}

TEST_F(RecordsTest, TakesSeparatorsAndLineEndsInQuotesForText) {
  EXPECT_THAT(rows("\"a,\nb\",\"c \"\"d\"\"\"\n5\" x,y\n"),
              ElementsAre(ElementsAre("\"a,\nb\"", "\"c \"\"d\"\"\""), ElementsAre("5\" x", "y")));
}

TEST_F(RecordsTest, ReportsAQuoteThatIsNotClosed) {
  const auto found = rows("a,b\n1,\"2\n3,4\n");
  ASSERT_EQ(found.size(), 2U);
  EXPECT_THAT(found[1][0], HasSubstr("a quote is not closed"));
}

TEST_F(RecordsTest, SurvivesEveryCutAndChangedByte) {
  const std::string whole =
      "[{\"a\": [\"\\u00e9\", {\"b\": -1.5e3}]}, {\"c\": \"\xC3\xA9\", \"d\": null}, true]";
  Rng rng(7);
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_NE(list_refusal(whole.substr(0, i)), "") << i;
    std::string changed = whole;
    changed[i] = static_cast<char>(rng.next_u64());
    static_cast<void>(list_refusal(changed));
    static_cast<void>(rows(changed));
  }
}

std::vector<std::string> strings_of(std::string_view text, const std::vector<std::string>& names) {
  std::vector<std::string> found;
  for (const JsonString& string : find_json_strings(text, names).found)
    found.emplace_back(text.substr(string.offset, string.length));
  return found;
}

TEST(JsonStringsTest, FindsTheLiteralOfAField) {
  EXPECT_THAT(strings_of(R"( {"x": {"caption": "no"}, "caption" : "a \"cat\"", "y": 1})", {"caption"}),
              ElementsAre(R"("a \"cat\"")"));
}

TEST(JsonStringsTest, FindsEachStringOfAList) {
  EXPECT_THAT(strings_of(R"({"caption": ["a", 1, "b", ["no"], {"caption": "no"}, "c"]})", {"caption"}),
              ElementsAre("\"a\"", "\"b\"", "\"c\""));
}

TEST(JsonStringsTest, TakesTheLastOfARepeatedField) {
  EXPECT_THAT(strings_of(R"({"caption": "a", "caption": "b"})", {"caption"}), ElementsAre("\"b\""));
}

TEST(JsonStringsTest, CountsBytes) {
  EXPECT_THAT(strings_of("{\"x\": \"\xE9\xE9\", \"\xC3\xBC\": \"\xFF.\"}", {"\xC3\xBC"}),
              ElementsAre("\"\xFF.\""));
}

TEST(JsonStringsTest, SaysWhatIsNoObject) {
  EXPECT_THAT(find_json_strings("[]", std::vector<std::string>{"a"}).problem, HasSubstr("got a list"));
  EXPECT_THAT(find_json_strings("7", std::vector<std::string>{"a"}).problem, HasSubstr("got a number"));
  EXPECT_THAT(find_json_strings(R"({"a": NaN})", std::vector<std::string>{"a"}).problem,
              HasSubstr("is not JSON"));
  EXPECT_THAT(find_json_strings("", std::vector<std::string>{"a"}).problem, HasSubstr("is not JSON"));
}

}  // namespace
}  // namespace chiliad::dataset::detail
