#pragma once

#include <fmt/format.h>

#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

namespace chiliad {

/// What a failure means to its reader: who can do something about it, and whether trying again helps.
enum class ErrorKind { kInvalidInput, kUnavailable, kCorruptData, kPeerLost, kInternal };

/// Base of the five exception kinds. `place` says where (file, line, key, rank); what() is "place: message".
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, std::string place, const std::string& message);

  [[nodiscard]] ErrorKind kind() const { return kind_; }
  [[nodiscard]] const std::string& place() const { return place_; }

 private:
  ErrorKind kind_;
  std::string place_;
};

/// The user can fix it; the message says how.
class InvalidInput : public Error {
 public:
  InvalidInput(std::string place, const std::string& message)
      : Error(ErrorKind::kInvalidInput, std::move(place), message) {}
};

/// Disk or network; may be retried.
class Unavailable : public Error {
 public:
  Unavailable(std::string place, const std::string& message)
      : Error(ErrorKind::kUnavailable, std::move(place), message) {}
};

/// A checksum or a format rule is violated.
class CorruptData : public Error {
 public:
  CorruptData(std::string place, const std::string& message)
      : Error(ErrorKind::kCorruptData, std::move(place), message) {}
};

/// A rank is gone or did not answer within its deadline; `rank` is -1 where unknown.
class PeerLost : public Error {
 public:
  PeerLost(std::string place, const std::string& message, int rank = -1)
      : Error(ErrorKind::kPeerLost, std::move(place), message), rank_(rank) {}
  [[nodiscard]] int rank() const { return rank_; }

 private:
  int rank_;
};

/// A bug of ours; thrown by CHILIAD_CHECK.
class InternalError : public Error {
 public:
  InternalError(std::string place, const std::string& message)
      : Error(ErrorKind::kInternal, std::move(place), message) {}
};

/// Exit codes of every program: 0 ok, 1 failed or unavailable, 2 wrong use or input, 3 damaged data, 4 peer
/// lost, 5 internal.
[[nodiscard]] int exit_code(const std::exception& error);

/// Throws the exception of `kind`; used where an error crosses a process or a thread.
[[noreturn]] void throw_error(ErrorKind kind, const std::string& place, const std::string& message);

namespace detail {
[[noreturn]] void check_failed(const char* file, int line, const char* expression,
                               const std::string& message);

template <typename A, typename B>
[[noreturn]] void check_op_failed(const char* file, int line, const char* expression, const A& a,
                                  const B& b) {
  check_failed(file, line, expression, fmt::format("{} against {}", a, b));
}
}  // namespace detail

}  // namespace chiliad

/// Always on; for our own bugs, never for user input. Further arguments are a fmt format and its values.
#define CHILIAD_CHECK(condition, ...)                                                                 \
  do {                                                                                                \
    if (!(condition)) [[unlikely]]                                                                    \
      ::chiliad::detail::check_failed(__FILE__, __LINE__, #condition, ::fmt::format("" __VA_ARGS__)); \
  } while (false)

#define CHILIAD_CHECK_OP_(op, a, b)                                                                      \
  do {                                                                                                   \
    const auto& chiliad_a_ = (a);                                                                        \
    const auto& chiliad_b_ = (b);                                                                        \
    if (!(chiliad_a_ op chiliad_b_)) [[unlikely]]                                                        \
      ::chiliad::detail::check_op_failed(__FILE__, __LINE__, #a " " #op " " #b, chiliad_a_, chiliad_b_); \
  } while (false)
#define CHILIAD_CHECK_EQ(a, b) CHILIAD_CHECK_OP_(==, a, b)
#define CHILIAD_CHECK_NE(a, b) CHILIAD_CHECK_OP_(!=, a, b)
#define CHILIAD_CHECK_LT(a, b) CHILIAD_CHECK_OP_(<, a, b)
#define CHILIAD_CHECK_LE(a, b) CHILIAD_CHECK_OP_(<=, a, b)
#define CHILIAD_CHECK_GT(a, b) CHILIAD_CHECK_OP_(>, a, b)
#define CHILIAD_CHECK_GE(a, b) CHILIAD_CHECK_OP_(>=, a, b)
