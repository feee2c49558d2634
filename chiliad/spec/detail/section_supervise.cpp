#include "chiliad/spec/detail/sections.h"

namespace chiliad::spec::detail {
namespace {

template <auto Member>
constexpr Access at = kAccess<&RunFile::supervise, Member>;

}  // namespace

Section supervise_section() {
  using O = SuperviseOptions;
  using enum OnResume;
  return {"supervise",
          "Watching over the workers.",
          {
              {"hang_timeout_s", at<&O::hang_timeout_s>, NumberRule{0.0, 86400.0, true, false}, kFree,
               "the job ends, naming the stuck rank, after so long without progress, seconds"},
              {"exit_grace_s", at<&O::exit_grace_s>, NumberRule{0.0, 3600.0, false, false}, kFree,
               "from the first failure of a worker to the kill of the others, seconds"},
          }};
}

}  // namespace chiliad::spec::detail
