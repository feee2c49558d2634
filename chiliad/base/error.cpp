#include "chiliad/base/error.h"

#include <filesystem>
#include <new>

#include "chiliad/base/error_kinds.h"

namespace chiliad {

Error::Error(ErrorKind kind, std::string place, const std::string& message)
    : std::runtime_error(place.empty() ? message : place + ": " + message),
      kind_(kind),
      place_(std::move(place)) {}

int exit_code(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return 1;
  if (dynamic_cast<const std::filesystem::filesystem_error*>(&error) != nullptr) return 1;
  return exit_code(kind_of(error));
}

void throw_error(ErrorKind kind, const std::string& place, const std::string& message) {
  switch (kind) {
    case ErrorKind::kInvalidInput:
      throw InvalidInput(place, message);
    case ErrorKind::kUnavailable:
      throw Unavailable(place, message);
    case ErrorKind::kCorruptData:
      throw CorruptData(place, message);
    case ErrorKind::kPeerLost:
      throw PeerLost(place, message);
    case ErrorKind::kInternal:
      break;
  }
  throw InternalError(place, message);
}

namespace detail {
void check_failed(const char* file, int line, const char* expression, const std::string& message) {
  throw InternalError(fmt::format("{}:{}", file, line),
                      fmt::format("check failed: {}{}{}", expression, message.empty() ? "" : ": ", message));
}
}  // namespace detail

}  // namespace chiliad
