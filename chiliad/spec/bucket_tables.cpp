#include "chiliad/spec/bucket_tables.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "chiliad/base/error.h"
#include "chiliad/spec/shape_stages.h"

namespace chiliad::spec {
namespace {

/// A row of a table: hundredths of height / width, height, width.
struct Row {
  int32_t ratio, height, width;
};

/// PixArt-sigma's tables of 256 to 2048 pixels, in 1/16 of the one of 256.
constexpr auto kPixart = std::to_array<Row>(
    {{25, 8, 32},   {26, 8, 31},   {27, 8, 30},   {28, 8, 29},   {32, 9, 28},   {33, 9, 27},   {35, 9, 26},
     {40, 10, 25},  {42, 10, 24},  {48, 11, 23},  {50, 11, 22},  {52, 11, 21},  {57, 12, 21},  {60, 12, 20},
     {68, 13, 19},  {72, 13, 18},  {78, 14, 18},  {82, 14, 17},  {88, 15, 17},  {94, 15, 16},  {100, 16, 16},
     {107, 16, 15}, {113, 17, 15}, {121, 17, 14}, {129, 18, 14}, {138, 18, 13}, {146, 19, 13}, {167, 20, 12},
     {175, 21, 12}, {200, 22, 11}, {209, 23, 11}, {240, 24, 10}, {250, 25, 10}, {289, 26, 9},  {300, 27, 9},
     {311, 28, 9},  {362, 29, 8},  {375, 30, 8},  {388, 31, 8},  {400, 32, 8}});

constexpr auto kOpenSora144 = std::to_array<Row>({{38, 117, 312},
                                                  {43, 125, 291},
                                                  {48, 133, 277},
                                                  {50, 135, 270},
                                                  {53, 139, 262},
                                                  {54, 141, 260},
                                                  {56, 144, 256},
                                                  {62, 151, 241},
                                                  {67, 156, 234},
                                                  {75, 166, 221},
                                                  {100, 192, 192},
                                                  {133, 221, 165},
                                                  {150, 235, 156},
                                                  {178, 256, 144},
                                                  {189, 263, 139},
                                                  {200, 271, 135},
                                                  {208, 277, 132}});
constexpr auto kOpenSora240 = std::to_array<Row>({{38, 196, 522},
                                                  {43, 210, 490},
                                                  {48, 222, 462},
                                                  {50, 226, 452},
                                                  {53, 232, 438},
                                                  {54, 236, 436},
                                                  {56, 240, 426},
                                                  {62, 252, 404},
                                                  {67, 262, 393},
                                                  {75, 276, 368},
                                                  {100, 320, 320},
                                                  {133, 370, 278},
                                                  {150, 392, 262},
                                                  {178, 426, 240},
                                                  {189, 440, 232},
                                                  {200, 452, 226},
                                                  {208, 462, 222}});
constexpr auto kOpenSora360 = std::to_array<Row>({{38, 294, 784},
                                                  {43, 314, 732},
                                                  {48, 332, 692},
                                                  {50, 340, 680},
                                                  {53, 350, 662},
                                                  {54, 352, 652},
                                                  {56, 360, 640},
                                                  {62, 380, 608},
                                                  {67, 392, 588},
                                                  {75, 416, 554},
                                                  {100, 480, 480},
                                                  {133, 554, 416},
                                                  {150, 588, 392},
                                                  {178, 640, 360},
                                                  {189, 660, 350},
                                                  {200, 678, 340},
                                                  {208, 692, 332}});
constexpr auto kOpenSora480 = std::to_array<Row>({{38, 392, 1046},
                                                  {43, 420, 980},
                                                  {48, 444, 925},
                                                  {50, 452, 904},
                                                  {53, 466, 880},
                                                  {54, 470, 870},
                                                  {56, 480, 854},
                                                  {62, 506, 810},
                                                  {67, 522, 784},
                                                  {75, 554, 738},
                                                  {100, 640, 640},
                                                  {133, 740, 555},
                                                  {150, 784, 522},
                                                  {178, 854, 480},
                                                  {189, 880, 466},
                                                  {200, 906, 454},
                                                  {208, 924, 444}});
constexpr auto kOpenSora720 = std::to_array<Row>({{38, 588, 1568},
                                                  {43, 628, 1466},
                                                  {48, 666, 1388},
                                                  {50, 678, 1356},
                                                  {53, 698, 1318},
                                                  {54, 706, 1306},
                                                  {56, 720, 1280},
                                                  {62, 758, 1212},
                                                  {67, 784, 1176},
                                                  {75, 832, 1110},
                                                  {100, 960, 960},
                                                  {133, 1108, 832},
                                                  {150, 1176, 784},
                                                  {178, 1280, 720},
                                                  {189, 1320, 698},
                                                  {200, 1358, 680},
                                                  {208, 1386, 666}});
constexpr auto kOpenSora1080 = std::to_array<Row>({{38, 882, 2352},
                                                   {43, 942, 2198},
                                                   {48, 998, 2080},
                                                   {50, 1018, 2036},
                                                   {53, 1048, 1980},
                                                   {54, 1058, 1958},
                                                   {56, 1080, 1920},
                                                   {62, 1138, 1820},
                                                   {67, 1176, 1764},
                                                   {75, 1248, 1664},
                                                   {100, 1440, 1440},
                                                   {133, 1662, 1246},
                                                   {150, 1764, 1176},
                                                   {178, 1920, 1080},
                                                   {189, 1980, 1048},
                                                   {200, 2036, 1018},
                                                   {208, 2078, 998}});

template <size_t N>
void add_rows(const std::array<Row, N>& rows, int32_t unit, std::vector<TableShape>& shapes) {
  for (const Row& row : rows) shapes.push_back({row.width * unit, row.height * unit, row.ratio / 100.0});
}

/// For each width the largest height, then the same with the roles swapped, and the square of 512.
std::vector<TableShape> novelai() {
  constexpr int32_t kArea = 512 * 768;
  constexpr int32_t kLow = 256;
  constexpr int32_t kHigh = 1024;
  constexpr int32_t kStep = 64;
  std::vector<TableShape> shapes;
  const auto add = [&](int32_t width, int32_t height) {
    const auto same = [&](const TableShape& s) { return s.width == width && s.height == height; };
    if (std::none_of(shapes.begin(), shapes.end(), same))
      shapes.push_back({width, height, static_cast<double>(height) / width});
  };
  for (int32_t side = kLow; side <= kHigh; side += kStep) {
    const int32_t other = std::min(kHigh, kArea / side / kStep * kStep);
    if (other < kLow) continue;
    add(side, other);
    add(other, side);
  }
  add(512, 512);
  std::sort(shapes.begin(), shapes.end(), [](const TableShape& a, const TableShape& b) {
    return a.width != b.width ? a.width < b.width : a.height > b.height;
  });
  return shapes;
}

}  // namespace

const std::vector<std::string>& bucket_table_names() {
  static const std::vector<std::string> kNames{
      "auto",          "kohya",         "novelai",       "pixart-256",    "pixart-512",    "pixart-1024",
      "pixart-2048",   "opensora",      "opensora-256",  "opensora-512",  "opensora-1024", "opensora-144p",
      "opensora-240p", "opensora-360p", "opensora-480p", "opensora-720p", "opensora-1080p"};
  return kNames;
}

bool is_generated(std::string_view name) {
  return name == "auto" || name == "kohya";
}

std::vector<TableShape> table_shapes(std::string_view name) {
  CHILIAD_CHECK(!is_generated(name), "{} is not a table", name);
  std::vector<TableShape> shapes;
  if (name == "novelai") return novelai();
  if (name == "opensora" || name.ends_with("-1024")) add_rows(kPixart, 64, shapes);
  if (name == "opensora" || name.ends_with("-512")) add_rows(kPixart, 32, shapes);
  if (name == "opensora" || name.ends_with("-256")) add_rows(kPixart, 16, shapes);
  if (name == "pixart-2048") add_rows(kPixart, 128, shapes);
  if (name == "opensora-144p") add_rows(kOpenSora144, 1, shapes);
  if (name == "opensora-240p") add_rows(kOpenSora240, 1, shapes);
  if (name == "opensora-360p") add_rows(kOpenSora360, 1, shapes);
  if (name == "opensora-480p") add_rows(kOpenSora480, 1, shapes);
  if (name == "opensora-720p") add_rows(kOpenSora720, 1, shapes);
  if (name == "opensora-1080p") add_rows(kOpenSora1080, 1, shapes);
  CHILIAD_CHECK(!shapes.empty(), "no table {}", name);
  return shapes;
}

int64_t longest_side(const DataOptions& data) {
  int64_t longest = 0;
  for (const DataOptions& stage : stage_options(data)) {
    if (is_generated(stage.buckets)) {
      longest = std::max(longest, stage.bucket_max);
      continue;
    }
    for (const TableShape& shape : table_shapes(stage.buckets))
      longest = std::max<int64_t>(longest, std::max(shape.width, shape.height));
  }
  return longest;
}

}  // namespace chiliad::spec
