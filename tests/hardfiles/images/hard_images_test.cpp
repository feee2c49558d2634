#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "chiliad/image/decode_fit.h"
#include "chiliad/image/image.h"
#include "chiliad/image/srgb.h"
#include "tests/support/kits.h"
#include "tests/support/picture_compare.h"
#include "tests/support/sha256.h"

namespace chiliad::image {
namespace {

using nlohmann::json;

struct Case {
  std::string name;
  json entry;
  std::vector<std::byte> bytes;
};

std::vector<Case> read_cases() {
  const auto kit = test::hard_files_kit();
  std::ifstream file(kit / "index.json");
  std::vector<Case> cases;
  const json index = json::parse(file);
  for (const auto& [name, entry] : index.at("files").items()) {
    if (entry.at("kind") == "image") cases.push_back({name, entry, test::read_bytes_lite(kit / name)});
  }
  return cases;
}

bool not_decoded(const Outcome<HostArray>& outcome) {
  return !outcome && outcome.reason.find("bmp: unsupported format") != std::string::npos;
}

bool accepts_also(const json& entry, const std::string& outcome) {
  for (const auto& also : entry.value("accept_also", json::array())) {
    if (also.get<std::string>().starts_with(outcome)) return true;
  }
  return false;
}

/// Empty if the pixels are those of `reference`, within its tolerance.
std::string difference_from(const json& reference, const HostArray& picture) {
  const Shape shape{reference.at("height"), reference.at("width"), 3};
  if (picture.shape() != shape) return "shape " + picture.shape().to_string() + " for " + shape.to_string();
  const int max_abs = reference.at("max_abs");
  if (max_abs == 0) {
    return test::sha256_hex(picture.bytes()) == reference.at("rgb8_sha256").get<std::string>()
               ? ""
               : "another digest";
  }
  if (reference.value("npy", json()).is_null()) return {};  // too big to be stored: its size was compared
  const auto pixels = test::read_npy_lite(test::hard_files_kit() / reference.at("npy").get<std::string>());
  const auto apart = test::distance(picture.bytes(), pixels.bytes);
  if (apart.max_abs <= max_abs && apart.mean_abs <= reference.at("mean_abs").get<double>()) return {};
  return fmt::format("max {} mean {:.3f} apart", apart.max_abs, apart.mean_abs);
}

/// Empty if a decoded picture is a right outcome of this entry.
std::string judge_pixels(const json& entry, const HostArray& picture) {
  if (entry.at("expect") != "ok" && !accepts_also(entry, "ok")) return "decoded, but must be refused";
  if (entry.value("reference", json()).is_null()) return {};
  std::string problem = difference_from(entry.at("reference"), picture);
  if (!problem.empty() && entry.contains("reference_also"))
    problem = difference_from(entry["reference_also"], picture);
  return problem;
}

TEST(HardImagesTest, HaveTheRightOutcome) {
  int num_judged = 0;
  for (const Case& item : read_cases()) {
    const auto outcome = decode(item.bytes, {});
    if (not_decoded(outcome)) {
      std::cout << "not decoded: " << item.name << " (" << outcome.reason.substr(0, outcome.reason.find(':'))
                << ")\n";
      continue;
    }
    ++num_judged;
    const std::string about = item.name + ": " + item.entry.at("source_fault").get<std::string>();
    if (outcome) {
      EXPECT_EQ(judge_pixels(item.entry, *outcome.value), "") << about;
    } else {
      EXPECT_TRUE(item.entry.at("expect") == "refuse" || accepts_also(item.entry, "refuse"))
          << about << ": refused: " << outcome.reason;
    }
  }
  EXPECT_GT(num_judged, 0);
}

TEST(HardImagesTest, ConvertToSrgbAsTheirIndexSays) {
  int num_converted = 0;
  SrgbConverter converter;
  for (const Case& item : read_cases()) {
    const auto plain = decode(item.bytes, {});
    std::string note;
    const auto outcome = decode(item.bytes, {.to_srgb = &converter, .profile_note = &note});
    ASSERT_EQ(static_cast<bool>(outcome), static_cast<bool>(plain)) << item.name << ": " << outcome.reason;
    if (!outcome) continue;
    if (item.entry.contains("reference_srgb")) {
      EXPECT_EQ(difference_from(item.entry["reference_srgb"], *outcome.value), "") << item.name;
      EXPECT_EQ(note, "") << item.name;
      ++num_converted;
    } else {
      EXPECT_EQ(test::distance(outcome.value->bytes(), plain.value->bytes()).max_abs, 0)
          << item.name << ": " << note;
    }
  }
  EXPECT_GT(num_converted, 0);
}

TEST(HardImagesTest, HaveTheSameOutcomeInOneGo) {
  FitOptions options;
  options.fit = [](int32_t width, int32_t height) { return cover_fit(width, height, 16, 16, 0.3, 0.8); };
  for (const Case& item : read_cases()) {
    const auto whole = decode(item.bytes, {});
    std::vector<std::byte> slot(size_t{16} * 16 * 3);
    EXPECT_EQ(decode_fit(item.bytes, options, slot).empty(), static_cast<bool>(whole)) << item.name;
    if (!whole) continue;
    const HostArray expected = cover(*whole.value, 16, 16, Filter::kBicubic, 0.3, 0.8);
    EXPECT_EQ(test::distance(slot, expected.bytes()).max_abs, 0) << item.name;
  }
}

TEST(HardImagesTest, RefusalsAreOneLine) {
  for (const Case& item : read_cases()) {
    const auto outcome = decode(item.bytes, {});
    if (outcome) continue;
    EXPECT_NE(outcome.reason, "") << item.name;
    EXPECT_EQ(outcome.reason.find('\n'), std::string::npos) << item.name << ": " << outcome.reason;
  }
}

TEST(HardImagesTest, ProbeAgreesWithDecode) {
  for (const Case& item : read_cases()) {
    const auto picture = decode(item.bytes, {});
    if (!picture) continue;
    const auto info = probe(item.bytes);
    ASSERT_TRUE(info) << item.name << ": " << info.reason;
    EXPECT_EQ(Shape({info.value->height, info.value->width, 3}), picture.value->shape()) << item.name;
  }
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

int64_t address_space_bytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t pages = 0;
  statm >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

/// In a child: decodes all with `extra_bytes` of address space more than it has; its exit status says whether
/// that did.
int decode_all_within(const std::vector<Case>& cases, int64_t extra_bytes) {
  const pid_t child = fork();
  if (child == 0) {
    const auto limit = static_cast<rlim_t>(address_space_bytes() + extra_bytes);
    const rlimit wanted{limit, limit};
    if (setrlimit(RLIMIT_AS, &wanted) != 0) _exit(2);
    try {
      for (const Case& item : cases) static_cast<void>(decode(item.bytes, {}));
    } catch (const std::exception&) {
      _exit(1);
    }
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

TEST(HardImagesTest, StayNearTheirOwnSize) {
  if (kSanitized) GTEST_SKIP() << "sanitizers reserve address space of their own";
  EXPECT_EQ(decode_all_within(read_cases(), 64LL << 20), 0);
}

}  // namespace
}  // namespace chiliad::image
