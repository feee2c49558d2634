#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <memory>
#include <string>

#include "apps/chiliad/skeletons.h"
#include "apps/chiliad/verbs.h"
#include "chiliad/base/error.h"
#include "chiliad/base/host_array.h"
#include "chiliad/image/encode.h"
#include "chiliad/io/file.h"

namespace chiliad::cli {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  std::string kind;
  std::string name;
  std::string out;
};

void check_name(const std::string& name) {
  const bool good = !name.empty() && std::islower(static_cast<unsigned char>(name.front())) != 0 &&
                    std::all_of(name.begin(), name.end(), [](unsigned char c) {
                      return std::islower(c) != 0 || std::isdigit(c) != 0 || c == '_';
                    });
  if (good && name.size() <= 64) return;
  throw InvalidInput("chiliad new", fmt::format("expected a name of a to z, 0 to 9 and _, got '{}'. Choose "
                                                "another",
                                                name));
}

/// Slopes of a colour of its own; two shapes.
HostArray test_picture(int64_t number) {
  const int64_t width = number % 2 == 0 ? 32 : 48;
  HostArray picture(DType::kU8, Shape{32, width, 3});
  auto* bytes = reinterpret_cast<uint8_t*>(picture.data());
  for (int64_t y = 0; y < 32; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      for (int64_t channel = 0; channel < 3; ++channel)
        *bytes++ = static_cast<uint8_t>((40 * number + 70 * channel + 3 * x + 5 * y) % 256);
    }
  }
  return picture;
}

void write_test_pictures(const fs::path& folder) {
  constexpr std::array kColours{"red", "blue", "green", "amber", "violet", "grey", "rose", "olive"};
  io::make_folders(folder);
  for (size_t i = 0; i < kColours.size(); ++i) {
    const std::string stem = fmt::format("slope{}", i);
    const auto png = image::encode_png(test_picture(static_cast<int64_t>(i)));
    io::write_atomic(folder / (stem + ".png"),
                     std::string(reinterpret_cast<const char*>(png.data()), png.size()));
    io::write_atomic(folder / (stem + ".txt"), fmt::format("a {} slope\n", kColours[i]));
  }
}

int run(const Arguments& arguments) {
  check_name(arguments.name);
  const fs::path folder = arguments.out.empty() ? arguments.name : arguments.out;
  if (fs::exists(fs::symlink_status(folder)) && !(fs::is_directory(folder) && fs::is_empty(folder)))
    throw InvalidInput(folder.string(),
                       "expected a folder that is not there yet or is empty, got another. "
                       "Choose another name with --out DIR, or remove it");
  io::make_folders(folder);
  for (const auto& [name, text] : skeleton_files(arguments.kind, arguments.name))
    io::write_atomic(folder / name, text);
  write_test_pictures(folder / "pictures");
  const std::string shown = folder.string();
  fmt::print(
      "{0} {1}: {2}/{1}.cpp, {2}/run.yaml, {2}/CMakeLists.txt, {2}/pictures/\n"
      "Build and test it where Chiliad is installed or built (docs/extending.md):\n"
      "  cmake -S {2} -B {2}/build -DChiliad_DIR=DIR && cmake --build {2}/build && ctest --test-dir "
      "{2}/build\n"
      "DIR has ChiliadConfig.cmake: a build tree, or lib/cmake/Chiliad of an installed one.\n",
      arguments.kind, arguments.name, shown);
  return 0;
}

}  // namespace

void add_new(Verb& parent) {
  Verb verb = parent.add("new", "Writes the skeleton of an extension, with run file and test");
  for (const auto& [kind, help] : {std::pair{"layer", "A layer, and a family that has it in its blocks"},
                                   std::pair{"objective", "A loss on the path of flow matching"},
                                   std::pair{"model", "A model family with blocks of its own"}}) {
    auto arguments = std::make_shared<Arguments>();  // shared by the parser and the action, until the end
    arguments->kind = kind;
    Verb made = verb.add(kind, help);
    made.option("NAME", arguments->name, "Name in run files: a to z, 0 to 9 and _").required();
    made.option("--out", arguments->out, "Folder to make (default: NAME)");
    made.footer(fmt::format("Example: chiliad new {} my_{}", kind, kind));
    made.run([arguments] { return run(*arguments); });
  }
}

}  // namespace chiliad::cli
