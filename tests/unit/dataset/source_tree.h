#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "chiliad/image/encode.h"
#include "chiliad/io/file.h"
#include "tests/support/temp_dir.h"

namespace chiliad::dataset {

/// A small data set in a temporary folder, made file by file, with a place for its index beside it.
class SourceTree {
 public:
  void add_picture(const std::string& name, int64_t width, int64_t height) const {
    HostArray picture(DType::kU8, {height, width, 3});
    for (auto& value : picture.as<uint8_t>()) value = static_cast<uint8_t>(name.size() * 37);
    const auto bytes = image::encode_png(picture);
    add(name, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }

  void add(const std::string& name, std::string_view text) const {
    const auto path = source() / name;
    std::filesystem::create_directories(path.parent_path());
    io::File file = io::File::create(path);
    file.write(text);
    file.close();
  }

  [[nodiscard]] std::filesystem::path source() const { return folder_.path() / "source"; }
  [[nodiscard]] std::filesystem::path out() const { return folder_.path() / "index"; }

 private:
  test::TempDir folder_;
};

}  // namespace chiliad::dataset
