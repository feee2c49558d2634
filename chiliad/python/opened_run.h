#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "chiliad/dataset/build_index.h"
#include "chiliad/index/index.h"
#include "chiliad/loader/cached_parts.h"
#include "chiliad/loader/run_inputs.h"
#include "chiliad/python/block_cache.h"
#include "chiliad/spec/run_file.h"
#include "chiliad/stepplan/plan.h"

namespace chiliad::python {

/// A run file with what it names: index, inputs and plan. Immutable, thread-safe; shared by all plans and
/// loaders that were made of it, until the last is gone.
class OpenedRun {
 public:
  /// Makes missing token columns of the index; `progress` may throw to cancel that. Of several processes one
  /// makes them, the others wait.
  [[nodiscard]] static std::shared_ptr<const OpenedRun> open(spec::RunFile file,
                                                             const dataset::Progress& progress);

  [[nodiscard]] const spec::RunFile& file() const { return file_; }
  [[nodiscard]] const index::Index& index() const { return index_; }
  [[nodiscard]] const loader::RunInputs& inputs() const { return inputs_; }
  [[nodiscard]] const stepplan::Plan& plan() const { return *plan_; }
  /// Steps before `step` are over: for the block cache of a remote index.
  void reached(int64_t step) const {
    if (cache_ != nullptr) cache_->reached(*plan_, step);
  }
  ~OpenedRun() {
    if (cache_ != nullptr) cache_->close();
  }
  OpenedRun(const OpenedRun&) = delete;
  OpenedRun& operator=(const OpenedRun&) = delete;

 private:
  explicit OpenedRun(spec::RunFile file)
      : file_(std::move(file)),
        index_(loader::open_index(file_.data)),
        cache_(loader::remote_roots(index_).empty() ? nullptr : std::make_unique<BlockCache>(file_)),
        inputs_(loader::open_inputs(file_, index_, [this] { cache_->take_over(index_); })) {}
  void make_columns(const dataset::Progress& progress) const;
  void make_conversation_columns(const dataset::Progress& progress) const;

  spec::RunFile file_;
  index::Index index_;
  std::unique_ptr<BlockCache> cache_;  // null: the data is in files
  loader::RunInputs inputs_;
  std::unique_ptr<const stepplan::Plan> plan_;  // refers to index_
};

/// The run file at `path`, or the defaults where it is empty; overrides as those of `--set`.
[[nodiscard]] spec::RunFile read_run(const std::string& path, const std::vector<std::string>& overrides);

/// A journal.jsonl of a run directory; empty: none.
[[nodiscard]] stepplan::Journal read_journal(const std::filesystem::path& path);

}  // namespace chiliad::python
