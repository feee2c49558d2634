#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "chiliad/io/file.h"

namespace chiliad::observe {

/// Appends lines to a file that others follow while it grows. A line is written with one call, so a reader
/// never sees half of one but at the end of a full disk. Losing metrics must not lose a run: a failure is
/// warned about once and the lines after it are counted, each tried again. Not thread-safe.
class JsonlWriter {
 public:
  /// Creates the file where missing. A torn last line (a crash, a full disk) is closed first, so that it
  /// spoils no other.
  explicit JsonlWriter(std::filesystem::path path);

  /// `line` without its newline; newlines inside become spaces.
  void append(std::string_view line);
  [[nodiscard]] int64_t num_lost() const { return num_lost_; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  void open();

  std::filesystem::path path_;
  std::optional<io::File> file_;
  bool torn_ = false;  // the last write failed and may have left half a line
  int64_t num_lost_ = 0;
};

}  // namespace chiliad::observe
