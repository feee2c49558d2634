#include "chiliad/base/log.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <vector>

#include "chiliad/base/error.h"

namespace chiliad {
namespace {

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarn:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

struct Loggers {
  std::shared_ptr<spdlog::logger> text;  // shared with spdlog's registry for the life of the process
  std::shared_ptr<spdlog::logger> json;  // null where no file was asked for
};

Loggers& loggers() {
  static Loggers instance;
  return instance;
}

std::string json_escape(const std::string& text) {
  std::string out;
  out.reserve(text.size() + 8);
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else {
      out += c;
    }
  }
  return out;
}

std::shared_ptr<spdlog::sinks::basic_file_sink_mt> open_sink(const std::string& path) {
  try {
    return std::make_shared<spdlog::sinks::basic_file_sink_mt>(path);
  } catch (const spdlog::spdlog_ex& error) {
    throw Unavailable(path, fmt::format("cannot be written: {}", error.what()));
  }
}

}  // namespace

void start_logging(const LogOptions& options) {
  auto sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
  auto text = std::make_shared<spdlog::logger>("chiliad", sink);
  text->set_level(to_spdlog(options.level));
  text->set_pattern(options.prefix.empty() ? "%H:%M:%S %^%L%$ %v"
                                           : "%H:%M:%S %^%L%$ [" + options.prefix + "] %v");
  text->flush_on(spdlog::level::info);
  loggers().text = text;
  if (options.json_path.empty()) return;
  auto file = open_sink(options.json_path);
  auto json = std::make_shared<spdlog::logger>("chiliad-json", file);
  json->set_level(spdlog::level::debug);
  json->set_pattern(R"({"time":"%Y-%m-%dT%H:%M:%S.%e","level":"%l","message":"%v"})");
  json->flush_on(spdlog::level::info);
  loggers().json = json;
}

void log_line(LogLevel level, const std::string& line) {
  const auto& active = loggers();
  if (active.text == nullptr) {
    fmt::print(stderr, "{}\n", line);
    return;
  }
  active.text->log(to_spdlog(level), "{}", line);
  if (active.json != nullptr) active.json->log(to_spdlog(level), "{}", json_escape(line));
}

}  // namespace chiliad
