#include "chiliad/python/opened_run.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/dataset/conversation_columns.h"
#include "chiliad/io/file.h"
#include "chiliad/loader/journal_file.h"
#include "chiliad/text/byte_tokenizer.h"

namespace chiliad::python {
namespace {

constexpr auto kLockPause = std::chrono::milliseconds(20);

bool has_columns(const index::Index& index, const Digest& tokenizer) {
  for (uint32_t shard = 0; shard < index.num_shards(); ++shard) {
    const Digest content = index.manifest().shards[shard].content;
    const auto path = index::token_column_path(index.folder_of(shard), content, tokenizer);
    if (!io::stat_file(path).has_value()) return false;
  }
  return true;
}

io::FileLock wait_for_lock(const std::filesystem::path& path, const dataset::Progress& progress) {
  for (;;) {
    if (auto lock = io::FileLock::try_lock(path, "chiliad (Python): token columns")) return std::move(*lock);
    progress(0, 0);
    std::this_thread::sleep_for(kLockPause);
  }
}

}  // namespace

void OpenedRun::make_columns(const dataset::Progress& progress) const {
  if (inputs_.conversations != nullptr) return make_conversation_columns(progress);
  const bool documents = inputs_.documents != nullptr;
  if (!documents && file_.model.family != "pixel_dit") return;
  const int64_t max_tokens = file_.model.text_max_tokens;
  const Digest tokenizer = documents ? inputs_.documents->digest() : text::ByteTokenizer(max_tokens).digest();
  if (has_columns(index_, tokenizer)) return;
  const auto lock = wait_for_lock(index_.folder() / "columns.lock", progress);
  if (documents) {
    dataset::build_document_columns(index_, *inputs_.documents, progress, inputs_.source.get());
  } else {
    dataset::build_token_columns(index_, max_tokens, progress, inputs_.source.get());
  }
}

void OpenedRun::make_conversation_columns(const dataset::Progress& progress) const {
  const auto& [encoder, view] = *inputs_.conversations;
  const text::ConversationKeys keys = encoder->keys();
  if (has_columns(index_, keys.ids) && has_columns(index_, keys.positions) && has_columns(index_, keys.tiles))
    return;
  const auto lock = wait_for_lock(index_.folder() / "columns.lock", progress);
  dataset::build_conversation_columns(index_, *encoder, view, progress, inputs_.source.get());
}

std::shared_ptr<const OpenedRun> OpenedRun::open(spec::RunFile file, const dataset::Progress& progress) {
  std::shared_ptr<OpenedRun> run(new OpenedRun(std::move(file)));
  run->make_columns(progress);
  run->plan_ =
      std::make_unique<const stepplan::Plan>(loader::open_plan(run->file_, run->index_, run->inputs_));
  return run;
}

spec::RunFile read_run(const std::string& path, const std::vector<std::string>& overrides) {
  static const std::string kFlag = "--set ";
  try {
    if (!path.empty()) return spec::read_run_file(path, overrides);
    return spec::parse_run_file("version: 1\n", "options", "loader", overrides);
  } catch (const InvalidInput& error) {
    // Options are keyword arguments here.
    const std::string text = error.what();
    if (!text.starts_with(kFlag)) throw;
    const std::string place = error.place().substr(kFlag.size());
    throw InvalidInput(place, text.substr(std::min(text.size(), kFlag.size() + place.size() + 2)));
  }
}

stepplan::Journal read_journal(const std::filesystem::path& path) {
  if (path.empty()) return {};
  return loader::read_journal(path);
}

}  // namespace chiliad::python
