#include "chiliad/spec/detail/sections.h"

namespace chiliad::spec::detail {
namespace {

template <auto Member>
constexpr Access at = kAccess<&RunFile::run, Member>;

}  // namespace

Section run_section() {
  using O = RunOptions;
  using enum OnResume;
  return {"run",
          "What the run is called, where it lives, how long it is.",
          {
              {"name", at<&O::name>, TextRule{}, kFree, "shown in logs", "stem of the run file"},
              {"dir", at<&O::dir>, TextRule{}, kFree, "run directory, kept as written",
               "runs/<stem of the run file>"},
              {"seed", at<&O::seed>, WholeRule{0, INT64_MAX}, kContent,
               "order of the data, random draws and initial weights"},
              {"steps", at<&O::steps>, WholeRule{1, 1'000'000'000}, kFree, "optimizer steps in all"},
          }};
}

}  // namespace chiliad::spec::detail
