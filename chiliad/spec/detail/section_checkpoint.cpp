#include "chiliad/spec/detail/sections.h"

namespace chiliad::spec::detail {
namespace {

template <auto Member>
constexpr Access at = kAccess<&RunFile::checkpoint, Member>;

}  // namespace

Section checkpoint_section() {
  using O = CheckpointOptions;
  using enum OnResume;
  return {"checkpoint",
          "Saving.",
          {
              {"every", at<&O::every>, WholeRule{0, 1'000'000'000}, kFree,
               "steps between checkpoints; 0: only at the end and on a signal"},
              {"keep", at<&O::keep>, WholeRule{1, 1'000'000}, kFree, "committed checkpoints that are kept"},
              {"timeout_s", at<&O::timeout_s>, NumberRule{0.0, 86400.0, true, false}, kFree,
               "deadline from the snapshot to the commit, seconds"},
          }};
}

}  // namespace chiliad::spec::detail
