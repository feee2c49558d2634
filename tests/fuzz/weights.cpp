// Files of weights: every tensor of one whose header is taken can be read.
#include <vector>

#include "chiliad/weights/safetensors.h"
#include "tests/fuzz/input_file.h"

namespace chiliad::fuzz {
namespace {

void run(const uint8_t* data, size_t size) {
  const InputFile input(data, size);
  accept_refusals([&] {
    const auto file = weights::SafetensorsFile::open(input.path());
    for (const auto& tensor : file.tensors()) {
      std::vector<std::byte> bytes(static_cast<size_t>(tensor.num_bytes()));
      file.read(tensor.name, bytes);
    }
  });
}

}  // namespace
}  // namespace chiliad::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  chiliad::fuzz::run(data, size);
  return 0;
}
