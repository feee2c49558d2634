#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chiliad/base/hash.h"
#include "chiliad/spec/run_file.h"

namespace chiliad::features {

/// Kinds of columns.
enum class Kind {
  kLatents,  ///< of pictures
  kText,     ///< of captions
};
[[nodiscard]] const char* kind_name(Kind kind);

/// Everything that the values of a column depend on beside the data itself: the encoder and what is done
/// before it. Columns of one kind with other facts lie beside each other.
struct Identity {
  Kind kind = Kind::kLatents;
  std::vector<std::pair<std::string, std::string>> facts;  ///< in a fixed order

  [[nodiscard]] Digest key() const;
  /// Name of the column's folder: kind and the begin of its key.
  [[nodiscard]] std::string folder_name() const;
};

/// Identity of the run's column of that kind. Reads the whole encoder. Throws InvalidInput naming the run
/// file's key where there is no encoder.
[[nodiscard]] Identity identity_of(const spec::RunFile& run, Kind kind);

/// The same of each source of data.sources, in their order, whose columns lie in their own indexes: what each
/// would have in a run of its own. One where there are none.
[[nodiscard]] std::vector<Identity> identities_of(const spec::RunFile& run, Kind kind);

/// The run file as each of its sources alone would have it, in their order, for who makes their columns; the
/// run file itself where there are none.
[[nodiscard]] std::vector<spec::RunFile> source_runs(const spec::RunFile& run);

/// The kinds that the run's model reads.
[[nodiscard]] std::vector<Kind> kinds_of(const spec::RunFile& run);

/// Whether an encoder of the run file is a class of a Python file, "enc.py:Encoder", in place of a folder.
[[nodiscard]] bool is_python(std::string_view encoder);

/// Digest of a folder's files that decide what its encoder computes: *.json, *.txt, *.model and
/// *.safetensors, names and bytes; of a pipeline, its text
/// encoders and tokenizers.
[[nodiscard]] Digest encoder_digest(const std::filesystem::path& folder);

}  // namespace chiliad::features
