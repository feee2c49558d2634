#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "chiliad/io/file.h"

namespace chiliad::dataset::detail {

/// Writes a ustar archive member by member; names that do not fit its fields and sizes above 8 GiB get a pax
/// record. Members have mode 0644, owner 0 and time 0: the same members make the same bytes. Writes PATH.tmp;
/// nothing is at PATH before finish().
class TarWriter {
 public:
  explicit TarWriter(std::filesystem::path path);

  void add(std::string_view name, std::span<const std::byte> bytes);
  /// Of the archive so far, without its end.
  [[nodiscard]] int64_t size() const { return size_; }
  /// Ends the archive; it is durably at PATH on return. Returns its size.
  int64_t finish();

 private:
  void write_member(std::string_view name, char type, std::span<const std::byte> bytes);

  std::filesystem::path path_;
  io::File file_;
  int64_t size_ = 0;
};

}  // namespace chiliad::dataset::detail
