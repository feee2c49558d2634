#include "chiliad/remote/http_store.h"

#include <curl/curl.h>
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <mutex>

#include "chiliad/base/error.h"

namespace chiliad::remote {
namespace {

constexpr size_t kMaxText = 16 << 20;  // of a page of a list

void start_curl() {
  static const CURLcode kStarted = curl_global_init(CURL_GLOBAL_DEFAULT);
  CHILIAD_CHECK(kStarted == CURLE_OK, "libcurl does not start: {}", static_cast<int>(kStarted));
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == '\r' || text.back() == '\n' || text.back() == ' '))
    text.remove_suffix(1);
  return text;
}

int64_t number_in(std::string_view text, int64_t otherwise) {
  int64_t value = otherwise;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  return parsed.ec == std::errc() ? value : otherwise;
}

/// What the store says went wrong: <Code> and <Message> of S3, else the first line.
std::string error_text(const std::string& text) {
  const auto tag = [&](const std::string& name) -> std::string {
    const size_t open = text.find("<" + name + ">");
    const size_t close = text.find("</" + name + ">");
    if (open == std::string::npos || close == std::string::npos || close < open) return "";
    const size_t start = open + name.size() + 2;
    return text.substr(start, std::min<size_t>(close - start, 200));
  };
  const std::string code = tag("Code");
  return code.empty() ? "" : fmt::format(" ({}: {})", code, tag("Message"));
}

}  // namespace

std::string percent_encoded(std::string_view text, bool keep_slashes) {
  std::string result;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("-._~").find(c) != std::string_view::npos ||
                       (keep_slashes && c == '/');
    result += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<uint8_t>(c));
  }
  return result;
}

/// Handles keep their connections: each is used by one request at a time.
class HttpStore::Handles {
 public:
  ~Handles() {
    for (CURL* handle : idle_) curl_easy_cleanup(handle);
  }
  [[nodiscard]] CURL* take() {
    {
      std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        CURL* handle = idle_.back();
        idle_.pop_back();
        return handle;
      }
    }
    CURL* handle = curl_easy_init();
    if (handle == nullptr) throw Unavailable("http", "no memory for a request");
    return handle;
  }
  void give_back(CURL* handle) {
    curl_easy_reset(handle);  // the connection stays
    std::lock_guard lock(mutex_);
    idle_.push_back(handle);
  }

 private:
  std::mutex mutex_;  // guards idle_
  std::vector<CURL*> idle_;
};

namespace {

/// Where curl puts what arrives.
struct Sink {
  std::span<std::byte>* out = nullptr;
  CURL* handle = nullptr;
  const store::Waiter* waiter = nullptr;
  Nanoseconds stall{0};
  curl_off_t progress = -1;  // bytes when something arrived last, and when that was
  Nanoseconds progress_at{0};
  int64_t received = 0;
  bool stalled = false;
  bool full = false;  // of a body that is longer than what is wanted
  std::string text{};
  std::string etag{};
  std::string range{};
  std::string modified{};
  std::string retry_after{};
};

size_t on_body(char* data, size_t size, size_t count, void* user) {
  auto& sink = *static_cast<Sink*>(user);
  const size_t bytes = size * count;
  int64_t status = 0;
  curl_easy_getinfo(sink.handle, CURLINFO_RESPONSE_CODE, &status);
  if (sink.out == nullptr || status / 100 != 2) {
    if (sink.text.size() + bytes > kMaxText) return 0;
    sink.text.append(data, bytes);
    return bytes;
  }
  const auto room = static_cast<int64_t>(sink.out->size()) - sink.received;
  const auto taken = std::min<int64_t>(room, static_cast<int64_t>(bytes));
  std::memcpy(sink.out->data() + sink.received, data, static_cast<size_t>(taken));
  sink.received += taken;
  sink.full = taken < static_cast<int64_t>(bytes);
  return static_cast<size_t>(taken);
}

size_t on_header(char* data, size_t size, size_t count, void* user) {
  auto& sink = *static_cast<Sink*>(user);
  const std::string_view line(data, size * count);
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return size * count;
  const std::string name = lower(line.substr(0, colon));
  const std::string value(trimmed(line.substr(colon + 1)));
  if (name == "etag") sink.etag = value;
  if (name == "content-range") sink.range = value;
  if (name == "last-modified") sink.modified = value;
  if (name == "retry-after") sink.retry_after = value;
  return size * count;
}

/// Called once a second at least.
int on_progress(void* user, curl_off_t, curl_off_t received, curl_off_t, curl_off_t) {
  auto& sink = *static_cast<Sink*>(user);
  const Nanoseconds now = SystemClock().now();
  if (received != sink.progress) {
    sink.progress = received;
    sink.progress_at = now;
  }
  sink.stalled = now - sink.progress_at > sink.stall;
  return sink.waiter->stopped() || sink.stalled ? 1 : 0;
}

}  // namespace

HttpStore::HttpStore(Options options, const store::Waiter& waiter)
    : options_(std::move(options)), waiter_(waiter), handles_(std::make_unique<Handles>()) {
  start_curl();
  const size_t host = options_.base.find("://");
  const std::string_view authority =
      host == std::string::npos
          ? std::string_view()
          : std::string_view(options_.base).substr(host + 3, options_.base.find('/', host + 3) - host - 3);
  if (authority.empty()) throw InvalidInput(options_.url, "is no address: expected http://HOST/PATH");
  if (authority.find('@') != std::string_view::npos) {
    throw InvalidInput(std::string(options_.base.substr(0, host + 3)) + "...",
                       "holds a name or password, which would be written into files. Put it into ~/.netrc");
  }
}

HttpStore::~HttpStore() = default;

std::string HttpStore::address_of(const std::string& object) const {
  if (store::is_plain_name(object)) return options_.base + "/" + percent_encoded(object, true);
  throw InvalidInput(options_.url, fmt::format("'{}' is no name of an object below it", object));
}

HttpStore::Answer HttpStore::request(const std::string& place, const std::string& address, bool head,
                                     const std::string& range, std::span<std::byte>* out,
                                     Nanoseconds timeout) {
  CURL* handle = handles_->take();
  Sink sink{.out = out, .handle = handle, .waiter = &waiter_, .stall = options_.stall_timeout};
  const auto milliseconds = [](Nanoseconds time) {
    return static_cast<long>(std::max<int64_t>(1, time.count() / 1'000'000));
  };
  std::array<char, CURL_ERROR_SIZE> problem{};
  curl_slist* headers = nullptr;
  curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, problem.data());
  curl_easy_setopt(handle, CURLOPT_URL, address.c_str());
  curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(handle, CURLOPT_USERAGENT, "chiliad");
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS, milliseconds(timeout));
  curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS,
                   milliseconds(std::min(timeout, options_.connect_timeout)));
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, on_body);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, &sink);
  curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, on_header);
  curl_easy_setopt(handle, CURLOPT_HEADERDATA, &sink);
  curl_easy_setopt(handle, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, on_progress);
  curl_easy_setopt(handle, CURLOPT_XFERINFODATA, &sink);
  if (head) curl_easy_setopt(handle, CURLOPT_NOBODY, 1L);
  if (!range.empty()) curl_easy_setopt(handle, CURLOPT_RANGE, range.c_str());
  std::string signing;
  std::string user;
  if (options_.region.empty()) {
    curl_easy_setopt(handle, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(handle, CURLOPT_MAXREDIRS, 5L);
    curl_easy_setopt(handle, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(handle, CURLOPT_NETRC, static_cast<long>(CURL_NETRC_OPTIONAL));
  } else if (!options_.credentials.key.empty()) {
    signing = "aws:amz:" + options_.region + ":s3";
    user = options_.credentials.key + ":" + options_.credentials.secret;
    curl_easy_setopt(handle, CURLOPT_AWS_SIGV4, signing.c_str());
    curl_easy_setopt(handle, CURLOPT_USERPWD, user.c_str());
    if (!options_.credentials.session_token.empty())
      headers =
          curl_slist_append(headers, ("x-amz-security-token: " + options_.credentials.session_token).c_str());
  }
  if (headers != nullptr) curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers);

  const CURLcode code = curl_easy_perform(handle);
  Answer answer;
  int64_t status = 0;
  curl_off_t length = -1;
  curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
  curl_easy_getinfo(handle, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
  curl_slist_free_all(headers);
  handles_->give_back(handle);
  if (waiter_.stopped()) throw Unavailable(place, "stopped while it was read");
  if (sink.stalled) {
    throw Unavailable(place, fmt::format("no byte came for {:.1f} s", to_seconds(options_.stall_timeout)));
  }
  if (code != CURLE_OK && !(code == CURLE_WRITE_ERROR && sink.full)) {
    const std::string detail = problem[0] == '\0' ? curl_easy_strerror(code) : problem.data();
    throw Unavailable(place, detail);
  }
  answer.status = status;
  answer.length = length;
  answer.received = sink.received;
  answer.etag = std::move(sink.etag);
  answer.text = std::move(sink.text);
  answer.retry_after = std::chrono::seconds(std::clamp<int64_t>(number_in(sink.retry_after, 0), 0, 3600));
  if (!sink.modified.empty())
    answer.mtime_ns = std::max<int64_t>(0, curl_getdate(sink.modified.c_str(), nullptr)) * 1'000'000'000;
  if (sink.range.starts_with("bytes ")) {  // bytes FIRST-LAST/LENGTH, bytes */LENGTH
    const std::string_view text = std::string_view(sink.range).substr(6);
    const size_t dash = text.find('-');
    const size_t slash = text.find('/');
    if (slash != std::string_view::npos) answer.length = number_in(text.substr(slash + 1), -1);
    if (dash != std::string_view::npos && slash != std::string_view::npos && dash < slash) {
      answer.first = number_in(text, -1);
      answer.last = number_in(text.substr(dash + 1), -1);
    }
  }
  return answer;
}

void HttpStore::check(const std::string& place, const Answer& answer) {
  const int64_t status = answer.status;
  if (status / 100 == 2) return;
  const std::string said = fmt::format("the store answered {}{}", status, error_text(answer.text));
  if (status == 429 || status == 503) throw store::StoreBusy(place, said, answer.retry_after);
  if (status / 100 == 5 || status == 408 || status == 0 ||
      (status == 400 && answer.text.find("RequestTimeout") != std::string::npos))
    throw Unavailable(place, said);
  if (status == 404 || status == 410)
    throw InvalidInput(place, said + ": there is no such object. Check the address, or index the data again");
  if (status == 401 || status == 403) {
    throw InvalidInput(place, said +
                                  ": access is denied. Check the credentials (AWS_ACCESS_KEY_ID and "
                                  "AWS_SECRET_ACCESS_KEY, ~/.aws/credentials, ~/.netrc) and their rights");
  }
  throw InvalidInput(place, said + ". Check the address");
}

store::ObjectInfo HttpStore::stat(const std::string& object, Nanoseconds timeout) {
  const std::string place = place_of(object);
  const Answer answer = request(place, address_of(object), true, "", nullptr, timeout);
  check(place, answer);
  if (answer.length < 0) throw Unavailable(place, "the store did not say how many bytes it has");
  return {object, answer.length, answer.mtime_ns, answer.etag};
}

int64_t HttpStore::read(const std::string& object, int64_t offset, std::span<std::byte> out,
                        Nanoseconds timeout) {
  if (out.empty()) return 0;
  const std::string place = place_of(object);
  const int64_t last = offset + static_cast<int64_t>(out.size()) - 1;
  const Answer answer =
      request(place, address_of(object), false, fmt::format("{}-{}", offset, last), &out, timeout);
  constexpr int64_t kBeyondTheEnd = 416;
  if (answer.status == kBeyondTheEnd) return 0;
  check(place, answer);
  constexpr int64_t kPart = 206;
  if (answer.status != kPart && offset > 0) {
    throw InvalidInput(place,
                       "the server does not answer range requests. Serve the data with one that does, or "
                       "copy it here");
  }
  const int64_t end = answer.status == kPart ? answer.length : std::max(answer.length, answer.received);
  const int64_t there = end < 0
                            ? static_cast<int64_t>(out.size())
                            : std::min(static_cast<int64_t>(out.size()), std::max<int64_t>(0, end - offset));
  if (answer.status == kPart && (answer.first != offset || answer.received < there)) {
    throw Unavailable(place, fmt::format("asked for bytes {}-{}, got {} from {}", offset, last,
                                         answer.received, answer.first));
  }
  if (answer.received < there)
    throw Unavailable(place, fmt::format("expected {} bytes, got {}", there, answer.received));
  return there;
}

store::ListPage HttpStore::list(const std::string&, Nanoseconds) {
  throw InvalidInput(options_.url,
                     "a web server cannot be listed. Name its shards: .../shard-{000000..000099}.tar");
}

}  // namespace chiliad::remote
