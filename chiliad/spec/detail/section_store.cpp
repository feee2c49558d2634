#include "chiliad/spec/detail/sections.h"

namespace chiliad::spec::detail {
namespace {

template <auto Member>
constexpr Access at = kAccess<&RunFile::store, Member>;

}  // namespace

Section store_section() {
  using O = StoreOptions;
  using enum OnResume;
  return {
      "store",
      "Data that lies in an object store (s3://) or on a web server, and its cache on this machine. Of no "
      "use "
      "where the data is in files.",
      {
          {"folder", at<&O::folder>, TextRule{}, kFree,
           "folder of the block cache, on a disk of this machine; needed where the data is remote; one job "
           "at "
           "a time uses it, and what it holds serves the next one"},
          {"bytes", at<&O::bytes>, BytesRule{int64_t{64} << 20, int64_t{1} << 50}, kFree,
           "size that the block cache may have on disk"},
          {"deadline_s", at<&O::deadline_s>, NumberRule{0.0, 86400.0, true, false}, kFree,
           "trouble of the store that lasts longer ends the job, seconds; below supervise.hang_timeout_s"},
          {"stall_s", at<&O::stall_s>, NumberRule{1.0, 3600.0, false, false}, kFree,
           "an answer that brings no byte for so long is given up and asked for again, seconds"},
          {"connections", at<&O::connections>, WholeRule{1, 1024}, kFree,
           "requests at once, at most; fewer while the store asks to slow down"},
          {"requests_per_second", at<&O::requests_per_second>, NumberRule{0.0, 1e6, false, false}, kFree,
           "most requests a second to a store; 0: no limit"},
      }};
}

}  // namespace chiliad::spec::detail
