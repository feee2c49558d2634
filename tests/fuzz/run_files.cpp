// Run files: what is taken is written out and read back to the same.
#include <string>
#include <string_view>

#include "chiliad/spec/run_file.h"
#include "tests/fuzz/input_file.h"

namespace chiliad::fuzz {
namespace {

void run(std::string_view text) {
  accept_refusals([&] {
    const auto file = spec::parse_run_file(text, "run.yaml", "run", {});
    const auto resolved = spec::to_yaml(file);
    CHILIAD_CHECK(spec::to_yaml(spec::parse_run_file(resolved, "resolved", "run", {})) == resolved);
  });
}

}  // namespace
}  // namespace chiliad::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  chiliad::fuzz::run({reinterpret_cast<const char*>(data), size});
  return 0;
}
