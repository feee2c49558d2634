#pragma once

#include <filesystem>

#include "chiliad/stepplan/journal.h"

namespace chiliad::loader {

/// The journal of a run directory, which a job may be writing: a last line that is not whole was never used
/// and is left out. Throws InvalidInput if there is no file, CorruptData as Journal::from_jsonl.
[[nodiscard]] stepplan::Journal read_journal(const std::filesystem::path& path);

}  // namespace chiliad::loader
