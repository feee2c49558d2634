#include "chiliad/loader/journal_file.h"

#include <string>

#include "chiliad/io/file.h"

namespace chiliad::loader {
namespace {

constexpr int64_t kMaxJournalBytes = 1LL << 30;

}  // namespace

stepplan::Journal read_journal(const std::filesystem::path& path) {
  std::string text = io::read_text(path, kMaxJournalBytes);
  const auto end = text.rfind('\n');
  text.resize(end == std::string::npos ? 0 : end + 1);
  return stepplan::Journal::from_jsonl(text);
}

}  // namespace chiliad::loader
