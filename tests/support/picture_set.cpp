#include "tests/support/picture_set.h"

#include <fmt/core.h>

#include <array>
#include <fstream>

#include "chiliad/base/rng.h"
#include "chiliad/dataset/build_index.h"
#include "chiliad/image/encode.h"

namespace chiliad::test {
namespace {

namespace fs = std::filesystem;

struct Size {
  int64_t width;
  int64_t height;
};
constexpr std::array<Size, 5> kSizes{{{48, 48}, {80, 40}, {36, 60}, {64, 48}, {40, 80}}};

HostArray make_picture(int64_t number) {
  const Size size = kSizes[static_cast<size_t>(number) % kSizes.size()];
  HostArray picture(DType::kU8, Shape{size.height, size.width, 3});
  Rng rng(static_cast<uint64_t>(number) + 1);
  const int64_t base = static_cast<int64_t>(rng.below(128));
  auto* bytes = reinterpret_cast<uint8_t*>(picture.data());
  for (int64_t y = 0; y < size.height; ++y) {
    for (int64_t x = 0; x < size.width * 3; ++x) {
      const int64_t value = base + (x + 2 * y) % 100 + static_cast<int64_t>(rng.below(28));
      *bytes++ = static_cast<uint8_t>(value);
    }
  }
  return picture;
}

}  // namespace

std::string picture_name(int64_t i) {
  return fmt::format("p{:03}", i);
}

void write_pictures(const fs::path& folder, int64_t count) {
  fs::create_directories(folder);
  for (int64_t i = 0; i < count; ++i) {
    const auto png = image::encode_png(make_picture(i));
    std::ofstream(folder / (picture_name(i) + ".png"), std::ios::binary)
        .write(reinterpret_cast<const char*>(png.data()), static_cast<std::streamsize>(png.size()));
    std::ofstream(folder / (picture_name(i) + ".txt")) << fmt::format(
        "picture {}", std::string(static_cast<size_t>(1 + i % 13), static_cast<char>('a' + i % 26)));
  }
}

void index_pictures(const fs::path& folder, const fs::path& out) {
  dataset::IndexOptions options;
  options.layout = "image_text";
  options.block_bytes = 32 << 10;
  options.threads = 1;
  static_cast<void>(dataset::build_index(folder, out, options, [](int64_t, int64_t) {}));
}

void flip_bit(const fs::path& path) {
  const auto time = fs::last_write_time(path);
  const auto middle = static_cast<std::streamoff>(fs::file_size(path) / 2);
  {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(middle);
    const char byte = static_cast<char>(file.get() ^ 4);
    file.seekp(middle);
    file.put(byte);
  }
  fs::last_write_time(path, time);
}

}  // namespace chiliad::test
