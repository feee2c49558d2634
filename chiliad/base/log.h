#pragma once

#include <fmt/format.h>

#include <string>

namespace chiliad {

enum class LogLevel { kDebug, kInfo, kWarn, kError };

struct LogOptions {
  LogLevel level = LogLevel::kInfo;
  std::string prefix;     ///< e.g. "rank 1", printed before every line
  std::string json_path;  ///< appends one JSON object a line there; empty: none
};

/// Sets the process's one logger (stderr, and a JSONL file where asked). Call once in main, before threads
/// start.
void start_logging(const LogOptions& options);

/// Writes one line. Thread-safe. Before start_logging lines go to stderr.
void log_line(LogLevel level, const std::string& line);

template <typename... Args>
void log_debug(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::kDebug, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::kInfo, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void log_warn(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::kWarn, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void log_error(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::kError, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace chiliad
