#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "chiliad/base/unique_fd.h"

namespace chiliad::test {

/// A request as the server saw it.
struct HttpRequest {
  int64_t number = 0;  ///< from 0, over all connections
  std::string method{};
  std::string path{};  ///< without the first slash, percent-decoded
  std::string query{};
  std::map<std::string, std::string> headers{};  ///< names in lower case
};

/// What the server does wrong with a request.
struct HttpFault {
  enum class Kind {
    kNone,
    kStatus,      ///< answers with `status`
    kDrop,        ///< closes without an answer
    kStall,       ///< sends headers and half of the body, then nothing, for `stall` or until it is stopped
    kShort,       ///< says the full length, sends half and closes
    kShortRange,  ///< answers properly with half of the range
    kFlip         ///< flips one bit of the body
  };
  Kind kind = Kind::kNone;
  int status = 503;
  std::string retry_after{};
  std::chrono::milliseconds stall{60000};
};

/// Objects in memory behind HTTP on the loopback, with range requests, and lists as S3 has them for
/// /BUCKET/?list-type=2. Port 0.
class HttpServer {
 public:
  using Faults = std::function<HttpFault(const HttpRequest&)>;
  HttpServer();
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  void put(const std::string& path, std::string bytes);
  void remove(const std::string& path);
  /// Asked before each answer, from several threads, one at a time.
  void set_faults(Faults faults);

  [[nodiscard]] std::string address() const;  ///< http://127.0.0.1:PORT
  [[nodiscard]] int64_t requests() const { return requests_.load(); }
  [[nodiscard]] int64_t bytes_sent() const { return bytes_sent_.load(); }
  [[nodiscard]] int64_t connections() const { return accepted_.load(); }
  [[nodiscard]] int64_t most_at_once() const { return most_at_once_.load(); }
  [[nodiscard]] std::vector<HttpRequest> log() const;

 private:
  struct Connection {
    UniqueFd socket{};
    std::thread thread{};
  };
  void accept_all();
  void serve(int socket);
  bool answer(int socket, const HttpRequest& request);
  bool answer_list(int socket, const HttpRequest& request);
  void send_all(int socket, std::string_view bytes);

  UniqueFd listening_;
  int port_ = 0;
  std::atomic<bool> stopping_{false};
  std::atomic<int64_t> requests_{0};
  std::atomic<int64_t> bytes_sent_{0};
  std::atomic<int64_t> accepted_{0};
  std::atomic<int64_t> at_once_{0};
  std::atomic<int64_t> most_at_once_{0};
  mutable std::mutex mutex_;  // guards objects_, log_
  std::map<std::string, std::string> objects_;
  std::vector<HttpRequest> log_;
  std::mutex faults_mutex_;  // guards faults_
  Faults faults_;
  std::list<Connection> connections_;  // of the accepting thread
  std::thread accepting_;
};

}  // namespace chiliad::test
