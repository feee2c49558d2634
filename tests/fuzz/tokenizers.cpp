// Files of tokenizers, and texts through those that are taken: tokenizer.json, else a SentencePiece model.
#include <filesystem>
#include <fstream>
#include <string>

#include "chiliad/text/tokenizer.h"
#include "tests/fuzz/input_file.h"

namespace chiliad::fuzz {
namespace {

namespace fs = std::filesystem;

/// In memory; ends with the process.
const fs::path& folder() {
  static const fs::path made = [] {
    std::string name = "/dev/shm/chiliad-fuzz-XXXXXX";
    CHILIAD_CHECK(mkdtemp(name.data()) != nullptr);
    return fs::path(name);
  }();
  return made;
}

void run(const uint8_t* data, size_t size) {
  const auto path = folder() / (size > 0 && data[0] == '{' ? "tokenizer.json" : "spiece.model");
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(data), static_cast<long>(size));
  accept_refusals([&] {
    const auto tokenizer = text::open_tokenizer(path);
    for (const std::string given : {"Hello, world! It's 2026 \xC3\xA9\xE4\xBD\xA0", "\xFF\xFE a\x80", ""}) {
      const auto ids = tokenizer->encode_with_special(given);
      for (const int32_t id : ids) CHILIAD_CHECK(id >= 0 && id < tokenizer->vocabulary_size());
      (void)tokenizer->decode(ids, true);
    }
  });
  fs::remove(path);
}

}  // namespace
}  // namespace chiliad::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  chiliad::fuzz::run(data, size);
  return 0;
}
