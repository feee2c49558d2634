// Any bytes as a text, through a byte-level BPE: ids of the vocabulary, and what they say stays the same.
#include <string>

#include "chiliad/text/tokenizer.h"
#include "tests/fuzz/input_file.h"

namespace chiliad::fuzz {
namespace {

const text::Tokenizer& byte_level() {
  static const auto opened = text::open_tokenizer(CHILIAD_TEST_DATA "/golden/tokenizers/gpt2/tokenizer.json");
  return *opened;
}

void run(const std::string& given) {
  accept_refusals([&] {
    const auto ids = byte_level().encode(given);
    for (const int32_t id : ids) CHILIAD_CHECK(id >= 0 && id < byte_level().vocabulary_size());
    const auto back = byte_level().decode(ids, false);
    CHILIAD_CHECK(byte_level().decode(byte_level().encode(back), false) == back);
  });
}

}  // namespace
}  // namespace chiliad::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  chiliad::fuzz::run(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
