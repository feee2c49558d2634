#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "chiliad/base/error.h"
#include "chiliad/base/json_text.h"
#include "chiliad/dataset/build_index.h"
#include "chiliad/image/image.h"
#include "chiliad/io/file.h"
#include "chiliad/text/byte_tokenizer.h"
#include "tests/support/kits.h"
#include "tests/support/temp_dir.h"

// Every tar of the kit of hard files against the outcome that its index.json states.
namespace chiliad::dataset {
namespace {

using Json = nlohmann::ordered_json;

struct TarCase {
  std::string file;
  std::string expect;
  std::map<std::string, std::vector<std::string>> good;  ///< key -> extensions
  std::set<std::string> bad;
  std::map<std::string, std::string> text;
  bool bad_may_be_good = false;  ///< the kit accepts more than its first outcome
};

/// A key of the kit with the bytes that its marks stand for.
std::string to_bytes(std::string key) {
  using test::kByteMark;
  for (size_t at = key.find(kByteMark); at != std::string::npos; at = key.find(kByteMark)) {
    const std::string hex = key.substr(at + kByteMark.size(), 2);
    key.replace(at, kByteMark.size() + 3, 1, static_cast<char>(std::stoi(hex, nullptr, 16)));
  }
  return key;
}

std::vector<TarCase> all_cases() {
  std::vector<TarCase> cases;
  const Json kit = parse_json<Json>(test::hard_files_index());
  for (const auto& [file, entry] : kit.at("files").items()) {
    if (entry.at("kind") != "tar") continue;
    TarCase tar;
    tar.file = file;
    tar.expect = entry.at("expect");
    tar.bad_may_be_good = entry.contains("accept_also");
    for (const auto& [key, parts] : entry.at("samples").at("good").items()) {
      tar.good[to_bytes(key)] = parts.get<std::vector<std::string>>();
    }
    for (const auto& [key, why] : entry.at("samples").at("bad").items()) tar.bad.insert(to_bytes(key));
    if (entry.contains("text")) {
      for (const auto& [key, text] : entry.at("text").items()) tar.text[to_bytes(key)] = text;
    }
    cases.push_back(std::move(tar));
  }
  return cases;
}

template <typename Predicate>
std::vector<TarCase> cases_that(const Predicate& holds) {
  std::vector<TarCase> chosen;
  for (TarCase& tar : all_cases()) {
    if (holds(tar)) chosen.push_back(std::move(tar));
  }
  return chosen;
}
bool is_refused(const TarCase& tar) {
  return tar.expect == "refuse";
}
bool is_read(const TarCase& tar) {
  return !is_refused(tar);
}
bool states_text(const TarCase& tar) {
  return !tar.text.empty();
}

std::string part_text(const index::Index& index, const index::Shard& shard, const index::Part& part) {
  const io::File file = io::File::open_read(index.part_path(shard, part));
  std::string bytes(part.length, '\0');
  file.read_at(static_cast<int64_t>(part.offset), std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

class HardTarTest : public ::testing::TestWithParam<TarCase> {
 protected:
  IndexReport build() const {
    return build_index(test::hard_files_kit() / GetParam().file, folder_.path() / "index", {}, {});
  }
  [[nodiscard]] index::Index open() const { return index::Index::open(folder_.path() / "index"); }

  /// Keys of the samples that can be used with their picture and caption.
  static std::map<std::string, int64_t> usable(const index::Index& index) {
    std::map<std::string, int64_t> keys;
    for (int64_t i = 0; i < index.num_samples(); ++i) {
      const auto flags = index.sample(i).flags;
      if ((flags & (index::kBadImage | index::kNoCaption)) == 0) keys[index.key(i)] = i;
    }
    return keys;
  }

  test::TempDir folder_;
};

class RefusedTarTest : public HardTarTest {};
class TarTextTest : public HardTarTest {};

TEST_P(RefusedTarTest, IsNamedInTheError) {
  try {
    (void)build();
    FAIL() << "no refusal";
  } catch (const InvalidInput& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr(GetParam().file));
  }
}

TEST_P(HardTarTest, ComesOutAsTheKitStates) {
  const TarCase& tar = GetParam();
  const IndexReport report = build();
  const auto index = open();
  const auto keys = usable(index);
  std::set<std::string> reported;
  for (const BadSample& bad : report.bad) reported.insert(bad.key);

  for (const auto& [key, parts] : tar.good) {
    ASSERT_TRUE(keys.contains(key)) << "lost: " << key;
    EXPECT_EQ(index.sample(keys.at(key)).num_parts, parts.size()) << "half: " << key;
  }
  for (const std::string& key : tar.bad) {
    const bool out = keys.contains(key);
    EXPECT_TRUE(!out || tar.bad_may_be_good) << "came out: " << key;
    EXPECT_TRUE(out || reported.contains(key)) << "not reported: " << key;
  }
  EXPECT_LE(keys.size(), tar.good.size() + tar.bad.size());
}

TEST_P(TarTextTest, GivesTheTextThatTheKitStates) {
  const TarCase& tar = GetParam();
  (void)build();
  const auto index = open();
  const auto keys = usable(index);
  for (const auto& [key, expected] : tar.text) {
    const auto held = index.shard_of(keys.at(key));
    const index::Shard& shard = *held;
    const index::Caption& caption = shard.captions[index.sample(keys.at(key)).first_caption];
    std::string text =
        part_text(index, shard, shard.parts[caption.part]).substr(caption.offset, caption.length);
    (void)text::repair_utf8(text);
    EXPECT_EQ(text, expected);
  }
}

TEST_P(HardTarTest, PointsAtPicturesThatHaveTheirChecksum) {
  (void)build();
  const auto index = open();
  for (const auto& [key, sample] : usable(index)) {
    const auto part = index.image_part(sample);
    const std::string bytes = part_text(index, *index.shard_of(sample), *part);
    EXPECT_EQ(hash64(bytes), part->checksum) << key;
    EXPECT_TRUE(image::probe(std::as_bytes(std::span(bytes)))) << key;
  }
}

/// "tars/bad_checksum_middle.tar" -> "BadChecksumMiddle".
std::string test_name(const ::testing::TestParamInfo<TarCase>& tar) {
  const std::string stem = std::filesystem::path(tar.param.file).stem().string();
  std::string name;
  bool upper = true;
  for (const char c : stem) {
    if (c != '_') name.push_back(upper ? static_cast<char>(std::toupper(c)) : c);
    upper = c == '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Kit, HardTarTest, ::testing::ValuesIn(cases_that(is_read)), test_name);
INSTANTIATE_TEST_SUITE_P(Kit, RefusedTarTest, ::testing::ValuesIn(cases_that(is_refused)), test_name);
INSTANTIATE_TEST_SUITE_P(Kit, TarTextTest, ::testing::ValuesIn(cases_that(states_text)), test_name);

}  // namespace
}  // namespace chiliad::dataset
