#include "chiliad/extension/load.h"

#include <dlfcn.h>

#include <algorithm>
#include <string_view>

#include "chiliad/base/error.h"
#include "chiliad/extension/build_id.h"
#include "chiliad/extension/registry.h"
#include "chiliad/io/file.h"

namespace chiliad::extension {
namespace {

using Register = void (*)(Registry&);

constexpr int64_t kMostLibraryBytes = int64_t{1} << 30;
constexpr std::string_view kMark = CHILIAD_BUILD_ID_MARK;

/// As the library's file says: a library of another build might not load at all. Empty: it does not.
std::string id_in_file(const std::string& path) {
  const std::string bytes = io::read_text(path, kMostLibraryBytes);
  const size_t mark = bytes.find(kMark);
  if (mark == std::string::npos) return {};
  const size_t begin = mark + kMark.size();
  return bytes.substr(begin, std::min(bytes.find('\0', begin), bytes.size()) - begin);
}

void check_build(const std::string& path) {
  const std::string id = id_in_file(path);
  if (id.empty())
    throw InvalidInput(path,
                       "expected a library of extensions, got another file. Build it with "
                       "find_package(Chiliad) and the target chiliad::extension");
  if (id != build_id())
    throw InvalidInput(path, fmt::format("expected a library that was built with {}, got one of {}. Build it "
                                         "again with this Chiliad",
                                         build_id(), id));
}

Register open_library(const std::string& path) {
  ::dlerror();
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr)
    throw InvalidInput(path,
                       fmt::format("the library cannot be loaded: {}. Link what it needs", ::dlerror()));
  void* function = ::dlsym(library, "chiliad_register");
  if (function == nullptr)
    throw InvalidInput(path,
                       "expected a function extern \"C\" void chiliad_register(chiliad::Registry&), got "
                       "none. Add it");
  return reinterpret_cast<Register>(function);  // NOLINT: as dlsym gives functions
}

}  // namespace

std::string build_id() {
  return CHILIAD_BUILD_ID;
}

spec::Extensions load_extensions(const spec::ExtensionRequest& request) {
  for (const auto& path : request.libraries) check_build(path);
  Registry registry;
  for (const auto& path : request.libraries) {
    const Register add = open_library(path);
    try {
      add(registry);
    } catch (const InvalidInput& error) {
      throw InvalidInput(path, error.what());
    }
  }
  return registry.take();
}

}  // namespace chiliad::extension
