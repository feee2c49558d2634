#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "apps/chiliad/verbs.h"
#include "chiliad/base/error.h"
#include "chiliad/base/json_text.h"
#include "chiliad/supervise/launch/workers.h"

namespace chiliad::cli {
namespace {

std::string worker_or_none() {
  try {
    return supervise::worker_program();
  } catch (const InvalidInput&) {
    return "";
  }
}

int run(bool json) {
#ifdef CHILIAD_FAULTS
  constexpr bool kFaults = true;
#else
  constexpr bool kFaults = false;
#endif
  if (json) {
    const nlohmann::ordered_json page{{"version", CHILIAD_VERSION},
                                      {"compiler", __VERSION__},
                                      {"cplusplus", static_cast<int64_t>(__cplusplus)},
                                      {"fault_hooks", kFaults},
                                      {"worker", worker_or_none()}};
    fmt::print("{}\n", json_text(page));
  } else {
    fmt::print("chiliad {}{}\n", CHILIAD_VERSION, kFaults ? " (test build with fault hooks)" : "");
  }
  return 0;
}

}  // namespace

void add_version(Verb& parent) {
  auto json = std::make_shared<bool>(false);  // shared by the parser and the action, until the end
  Verb verb = parent.add("version", "Shows version and build");
  verb.flag("--json", *json, "Prints the result as one JSON object");
  verb.footer("Example: chiliad version --json");
  verb.run([json] { return run(*json); });
}

}  // namespace chiliad::cli
