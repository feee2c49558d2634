#include "tests/support/http_server.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "chiliad/base/error.h"

namespace chiliad::test {
namespace {

std::string decoded(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%' || i + 2 >= text.size()) {
      result += text[i];
      continue;
    }
    int byte = 0;
    std::from_chars(text.data() + i + 1, text.data() + i + 3, byte, 16);
    result += static_cast<char>(byte);
    i += 2;
  }
  return result;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

int64_t number(std::string_view text) {
  int64_t value = -1;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

HttpRequest parse(std::string_view head) {
  HttpRequest request;
  const size_t line_end = head.find("\r\n");
  const std::string_view line = head.substr(0, line_end);
  const size_t first = line.find(' ');
  const size_t second = line.find(' ', first + 1);
  request.method = line.substr(0, first);
  const std::string_view target = line.substr(first + 2, second - first - 2);
  const size_t question = target.find('?');
  request.path = decoded(target.substr(0, question));
  if (question != std::string_view::npos) request.query = target.substr(question + 1);
  size_t at = line_end + 2;
  while (at < head.size()) {
    const size_t end = std::min(head.find("\r\n", at), head.size());
    const std::string_view header = head.substr(at, end - at);
    const size_t colon = header.find(": ");
    if (colon != std::string_view::npos)
      request.headers[lower(std::string(header.substr(0, colon)))] = header.substr(colon + 2);
    at = end + 2;
  }
  return request;
}

std::string argument(const std::string& query, const std::string& name) {
  const std::string full = "&" + query + "&";
  const size_t at = full.find("&" + name + "=");
  if (at == std::string::npos) return "";
  const size_t start = at + name.size() + 2;
  return decoded(std::string_view(full).substr(start, full.find('&', start) - start));
}

}  // namespace

HttpServer::HttpServer() {
  listening_ = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  const bool listens = ::bind(listening_.get(), generic, length) == 0 &&
                       ::listen(listening_.get(), 256) == 0 &&
                       ::getsockname(listening_.get(), generic, &length) == 0;
  CHILIAD_CHECK(listens, "no port on the loopback");
  port_ = ntohs(address.sin_port);
  accepting_ = std::thread([this] { accept_all(); });
}

HttpServer::~HttpServer() {
  stopping_ = true;
  accepting_.join();
}

std::string HttpServer::address() const {
  return fmt::format("http://127.0.0.1:{}", port_);
}

void HttpServer::put(const std::string& path, std::string bytes) {
  std::lock_guard lock(mutex_);
  objects_[path] = std::move(bytes);
}

void HttpServer::remove(const std::string& path) {
  std::lock_guard lock(mutex_);
  objects_.erase(path);
}

void HttpServer::set_faults(Faults faults) {
  std::lock_guard lock(faults_mutex_);
  faults_ = std::move(faults);
}

std::vector<HttpRequest> HttpServer::log() const {
  std::lock_guard lock(mutex_);
  return log_;
}

void HttpServer::accept_all() {
  while (!stopping_) {
    pollfd entry{listening_.get(), POLLIN, 0};
    if (::poll(&entry, 1, 20) <= 0) continue;
    UniqueFd socket(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket.valid()) continue;
    ++accepted_;
    Connection& connection = connections_.emplace_back();
    connection.socket = std::move(socket);
    connection.thread = std::thread([this, fd = connection.socket.get()] { serve(fd); });
  }
  for (Connection& connection : connections_) ::shutdown(connection.socket.get(), SHUT_RDWR);
  for (Connection& connection : connections_) connection.thread.join();
}

void HttpServer::serve(int socket) {
  std::string buffered;
  std::array<char, 4096> chunk{};
  while (!stopping_) {
    const size_t end = buffered.find("\r\n\r\n");
    if (end == std::string::npos) {
      const ssize_t got = ::recv(socket, chunk.data(), chunk.size(), 0);
      if (got <= 0) break;
      buffered.append(chunk.data(), static_cast<size_t>(got));
      continue;
    }
    HttpRequest request = parse(std::string_view(buffered).substr(0, end));
    buffered.erase(0, end + 4);
    request.number = requests_++;
    const int64_t running = ++at_once_;
    int64_t most = most_at_once_.load();
    while (running > most && !most_at_once_.compare_exchange_weak(most, running)) {
    }
    {
      std::lock_guard lock(mutex_);
      log_.push_back(request);
    }
    const bool keep = request.query.find("list-type=2") != std::string::npos ? answer_list(socket, request)
                                                                             : answer(socket, request);
    --at_once_;
    if (!keep) break;
  }
  ::shutdown(socket, SHUT_RDWR);
}

void HttpServer::send_all(int socket, std::string_view bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t put = ::send(socket, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
    if (put <= 0) return;
    done += static_cast<size_t>(put);
  }
}

bool HttpServer::answer(int socket, const HttpRequest& request) {
  HttpFault fault;
  {
    std::lock_guard lock(faults_mutex_);
    if (faults_) fault = faults_(request);
  }
  std::optional<std::string> object;
  {
    std::lock_guard lock(mutex_);
    const auto found = objects_.find(request.path);
    if (found != objects_.end()) object = found->second;
  }
  using Kind = HttpFault::Kind;
  if (fault.kind == Kind::kDrop) return false;
  if (fault.kind == Kind::kStatus || !object.has_value()) {
    const std::string retry = fault.retry_after.empty() ? "" : "Retry-After: " + fault.retry_after + "\r\n";
    send_all(socket, fmt::format("HTTP/1.1 {} Fault\r\n{}Content-Length: 0\r\n\r\n",
                                 fault.kind == Kind::kStatus ? fault.status : 404, retry));
    return true;
  }
  const auto size = static_cast<int64_t>(object->size());
  int64_t first = 0;
  int64_t last = size - 1;
  const auto range = request.headers.find("range");
  const bool ranged = range != request.headers.end() && range->second.starts_with("bytes=");
  if (ranged) {
    const std::string_view text = std::string_view(range->second).substr(6);
    first = number(text);
    last = std::min(number(text.substr(text.find('-') + 1)), size - 1);
    if (first >= size) {
      send_all(
          socket,
          fmt::format("HTTP/1.1 416 Range\r\nContent-Range: bytes */{}\r\nContent-Length: 0\r\n\r\n", size));
      return true;
    }
  }
  if (fault.kind == Kind::kShortRange && ranged) last = first + (last - first) / 2;
  std::string body = object->substr(static_cast<size_t>(first), static_cast<size_t>(last - first + 1));
  if (fault.kind == Kind::kFlip && !body.empty()) body[body.size() / 2] ^= 0x10;
  std::string head =
      fmt::format("HTTP/1.1 {}\r\nContent-Length: {}\r\nAccept-Ranges: bytes\r\nETag: \"{}\"\r\n",
                  ranged ? "206 Partial" : "200 OK", body.size(), size);
  head += "Last-Modified: Mon, 02 Nov 2026 10:00:00 GMT\r\n";
  if (ranged) head += fmt::format("Content-Range: bytes {}-{}/{}\r\n", first, last, size);
  send_all(socket, head + "\r\n");
  if (request.method == "HEAD") return true;
  if (fault.kind == Kind::kShort || fault.kind == Kind::kStall) {
    send_all(socket, std::string_view(body).substr(0, body.size() / 2));
    if (fault.kind == Kind::kShort) return false;
    const auto until = std::chrono::steady_clock::now() + fault.stall;
    while (!stopping_ && std::chrono::steady_clock::now() < until) {
      pollfd entry{socket, POLLRDHUP, 0};
      if (::poll(&entry, 1, 10) > 0) return false;
    }
    return false;
  }
  send_all(socket, body);
  bytes_sent_ += static_cast<int64_t>(body.size());
  return true;
}

bool HttpServer::answer_list(int socket, const HttpRequest& request) {
  constexpr size_t kPage = 3;
  const std::string prefix = request.path + argument(request.query, "prefix");
  const std::string after = argument(request.query, "continuation-token");
  std::string body = "<?xml version=\"1.0\"?><ListBucketResult>";
  size_t listed = 0;
  std::string last;
  bool more = false;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [name, bytes] : objects_) {
      if (!name.starts_with(prefix) || name <= after) continue;
      if (listed == kPage) {
        more = true;
        break;
      }
      std::string key = name.substr(request.path.size());
      for (size_t at = key.find('&'); at != std::string::npos; at = key.find('&', at + 1))
        key.replace(at, 1, "&amp;");
      body += fmt::format(
          "<Contents><Key>{}</Key><LastModified>2026-11-02T10:00:00.000Z</LastModified>"
          "<ETag>&quot;x&quot;</ETag><Size>{}</Size></Contents>",
          key, bytes.size());
      last = name;
      ++listed;
    }
  }
  body += fmt::format("<IsTruncated>{}</IsTruncated>", more);
  if (more) body += "<NextContinuationToken>" + last + "</NextContinuationToken>";
  body += "</ListBucketResult>";
  send_all(socket, fmt::format("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{}", body.size(), body));
  return true;
}

}  // namespace chiliad::test
