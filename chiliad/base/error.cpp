#include "chiliad/base/error.h"

#include <new>

namespace chiliad {

Error::Error(ErrorKind kind, std::string place, const std::string& message)
    : std::runtime_error(place.empty() ? message : place + ": " + message),
      kind_(kind),
      place_(std::move(place)) {}

int exit_code(const std::exception& error) {
  const auto* known = dynamic_cast<const Error*>(&error);
  if (known == nullptr) return dynamic_cast<const std::bad_alloc*>(&error) != nullptr ? 1 : 5;
  switch (known->kind()) {
    case ErrorKind::kInvalidInput:
      return 2;
    case ErrorKind::kUnavailable:
      return 1;
    case ErrorKind::kCorruptData:
      return 3;
    case ErrorKind::kPeerLost:
      return 4;
    case ErrorKind::kInternal:
      return 5;
  }
  return 5;
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
