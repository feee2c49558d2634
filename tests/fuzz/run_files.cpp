// Run files: what is taken is written out and read back to the same. Mixtures: what is taken is in range.
#include <string>
#include <string_view>

#include "chiliad/spec/mixture_file.h"
#include "chiliad/spec/run_file.h"
#include "tests/fuzz/input_file.h"

namespace chiliad::fuzz {
namespace {

void run(std::string_view text) {
  accept_refusals([&] {
    for (const auto& entry : spec::parse_mixture(text, "mix.yaml")) {
      const int64_t count = entry.sampling.count(1000);
      CHILIAD_CHECK(!entry.place.empty() && count >= 1 && count <= 1000, "{} takes {}", entry.path, count);
    }
  });
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
