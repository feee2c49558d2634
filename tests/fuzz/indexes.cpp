// Sidecars and manifests of an index; a text is a manifest.
#include <span>
#include <string>

#include "chiliad/index/detail/parse.h"
#include "tests/fuzz/input_file.h"

namespace chiliad::fuzz {
namespace {

void run(const uint8_t* data, size_t size) {
  accept_refusals([&] {
    if (size > 0 && data[0] == '{') {
      (void)index::detail::parse_manifest(std::string(reinterpret_cast<const char*>(data), size), "manifest");
      return;
    }
    (void)index::detail::parse_sidecar(std::as_bytes(std::span(data, size)), "sidecar");
  });
}

}  // namespace
}  // namespace chiliad::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  chiliad::fuzz::run(data, size);
  return 0;
}
