#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "chiliad/base/dtype.h"
#include "chiliad/base/shape.h"

namespace chiliad::checkpoint::detail {

using Json = nlohmann::json;

inline constexpr int kMaxTensorRank = 16;
inline constexpr int64_t kMaxNumber = int64_t{1} << 59;  // times 8 bytes an element it still fits into int64

/// Parses `text`; throws CorruptData with `place`.
[[nodiscard]] Json parse_object(const std::string& place, std::string_view text);

/// Checked access to a JSON object that others may have damaged: every failure is CorruptData with `place`
/// and the key.
class Fields {
 public:
  /// Both must outlive it. Throws CorruptData if `object` is none.
  Fields(const Json& object, const std::string& place);

  [[nodiscard]] int64_t integer(const char* key, int64_t low, int64_t high) const;
  [[nodiscard]] const std::string& text(const char* key) const;
  [[nodiscard]] const Json& array(const char* key) const;
  [[nodiscard]] uint64_t hex64(const char* key) const;
  [[nodiscard]] DType dtype(const char* key) const;
  /// Non-negative integers, at most kMaxTensorRank of them.
  [[nodiscard]] Shape shape(const char* key) const;
  /// Throws CorruptData if `key` holds anything but null.
  void null(const char* key) const;
  [[noreturn]] void refuse(const std::string& what) const;

 private:
  [[nodiscard]] const Json& at(const char* key) const;

  const Json& object_;
  const std::string& place_;
};

/// 16 lower-case hex digits.
[[nodiscard]] std::string hex64_text(uint64_t value);
[[nodiscard]] uint64_t hex64_value(const std::string& place, const std::string& text);

/// Lower-case letters, digits and '_': what may name a folder of a checkpoint.
[[nodiscard]] bool is_section_name(std::string_view name);

}  // namespace chiliad::checkpoint::detail
