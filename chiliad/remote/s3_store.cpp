#include "chiliad/remote/s3_store.h"

#include <curl/curl.h>
#include <fmt/core.h>

#include <charconv>
#include <ctime>
#include <string_view>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/io/file.h"

namespace chiliad::remote {
namespace {

struct Address {
  std::string bucket;
  std::string prefix;  // without slashes at its ends
};

Address parse(const std::string& url) {
  constexpr std::string_view kScheme = "s3://";
  std::string_view rest(url);
  rest.remove_prefix(kScheme.size());
  const size_t slash = rest.find('/');
  Address address{std::string(rest.substr(0, slash)), ""};
  if (slash != std::string_view::npos) address.prefix = rest.substr(slash + 1);
  while (address.prefix.ends_with('/')) address.prefix.pop_back();
  const bool plain = !address.bucket.empty() && address.bucket.find_first_not_of(
                                                    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                                    "0123456789.-_") == std::string::npos;
  if (!plain) throw InvalidInput(url, "expected s3://BUCKET/PREFIX");
  return address;
}

std::string bucket_address(const std::string& bucket, const S3Settings& settings) {
  if (settings.endpoint.empty()) {
    // A name with dots is not covered by the certificate of BUCKET.s3.REGION.
    if (bucket.find('.') != std::string::npos)
      return fmt::format("https://s3.{}.amazonaws.com/{}", settings.region, bucket);
    return fmt::format("https://{}.s3.{}.amazonaws.com", bucket, settings.region);
  }
  std::string endpoint = settings.endpoint;
  while (endpoint.ends_with('/')) endpoint.pop_back();
  return endpoint + "/" + bucket;
}

HttpStore::Options options_of(const std::string& url, const S3Settings& settings, Nanoseconds stall) {
  const Address address = parse(url);
  HttpStore::Options options;
  options.url = url;
  while (options.url.ends_with('/')) options.url.pop_back();
  options.base = bucket_address(address.bucket, settings);
  if (!address.prefix.empty()) options.base += "/" + percent_encoded(address.prefix, true);
  options.region = settings.region;
  options.stall_timeout = stall;
  options.credentials = settings.credentials;
  return options;
}

/// The value of `key` in section [name] of an INI file.
std::string ini_value(const std::string& text, const std::string& section, const std::string& key) {
  bool inside = false;
  size_t at = 0;
  const auto trim = [](std::string_view part) {
    while (!part.empty() && std::string_view(" \t\r").find(part.front()) != std::string_view::npos)
      part.remove_prefix(1);
    while (!part.empty() && std::string_view(" \t\r").find(part.back()) != std::string_view::npos)
      part.remove_suffix(1);
    return part;
  };
  while (at < text.size()) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = trim(std::string_view(text).substr(at, end - at));
    at = end + 1;
    if (line.starts_with('[')) {
      inside = line == "[" + section + "]";
      continue;
    }
    const size_t equals = line.find('=');
    if (inside && equals != std::string_view::npos && trim(line.substr(0, equals)) == key)
      return std::string(trim(line.substr(equals + 1)));
  }
  return "";
}

std::string text_at(const std::string& path) {
  constexpr int64_t kMost = 1 << 20;
  return io::stat_file(path).has_value() ? io::read_text(path, kMost) : "";
}

std::string unescaped(std::string_view text) {
  constexpr std::pair<std::string_view, char> kEntities[]{
      {"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}};
  std::string result;
  while (!text.empty()) {
    bool found = false;
    for (const auto& [entity, c] : kEntities) {
      if (!text.starts_with(entity)) continue;
      result += c;
      text.remove_prefix(entity.size());
      found = true;
      break;
    }
    if (!found && text.starts_with("&#")) {  // of bytes; S3 escapes line ends so
      int code = 0;
      const bool hex = text.size() > 2 && text[2] == 'x';
      const size_t start = hex ? 3 : 2;
      const size_t end = text.find(';');
      if (end != std::string_view::npos &&
          std::from_chars(text.data() + start, text.data() + end, code, hex ? 16 : 10).ec == std::errc() &&
          code > 0 && code < 128) {
        result += static_cast<char>(code);
        text.remove_prefix(end + 1);
        continue;
      }
    }
    if (found) continue;
    result += text.front();
    text.remove_prefix(1);
  }
  return result;
}

/// Text between <name> and </name>, the first behind `at`, which moves behind it; nothing where there is
/// none before `end`.
std::optional<std::string_view> next_tag(std::string_view text, std::string_view name, size_t& at,
                                         size_t end) {
  const std::string open = fmt::format("<{}>", name);
  const std::string close = fmt::format("</{}>", name);
  const size_t first = text.find(open, at);
  if (first == std::string_view::npos || first >= end) return std::nullopt;
  const size_t start = first + open.size();
  const size_t last = text.find(close, start);
  if (last == std::string_view::npos || last > end) return std::nullopt;
  at = last + close.size();
  return text.substr(start, last - start);
}

std::string tag_in(std::string_view text, std::string_view name) {
  size_t at = 0;
  const auto found = next_tag(text, name, at, text.size());
  return found.has_value() ? unescaped(*found) : "";
}

/// "2026-11-30T17:00:00.000Z"; 0 where it is none.
int64_t time_of(const std::string& text) {
  std::tm time{};
  const char* rest = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &time);
  if (rest == nullptr) return 0;
  return static_cast<int64_t>(::timegm(&time)) * 1'000'000'000;
}

}  // namespace

S3Settings s3_settings(const Environment& environment) {
  S3Settings settings;
  const auto get = [&](const char* name) { return environment(name).value_or(""); };
  const std::string home = get("HOME");
  const auto file = [&](const char* name, const std::string& otherwise) {
    const std::string path = get(name);
    return text_at(path.empty() ? home + otherwise : path);
  };
  const std::string config = file("AWS_CONFIG_FILE", "/.aws/config");
  const std::string named = get("AWS_PROFILE");
  const std::string profile = named.empty() ? "default" : named;
  Credentials& own = settings.credentials;
  own = {get("AWS_ACCESS_KEY_ID"), get("AWS_SECRET_ACCESS_KEY"), get("AWS_SESSION_TOKEN")};
  if (own.key.empty() && own.secret.empty()) {
    const std::string text = file("AWS_SHARED_CREDENTIALS_FILE", "/.aws/credentials");
    own = {ini_value(text, profile, "aws_access_key_id"), ini_value(text, profile, "aws_secret_access_key"),
           ini_value(text, profile, "aws_session_token")};
    if (!named.empty() && own.key.empty())
      throw InvalidInput("AWS_PROFILE", fmt::format("~/.aws/credentials has no key of profile '{}'", named));
  }
  if (own.key.empty() != own.secret.empty()) {
    throw InvalidInput("AWS_ACCESS_KEY_ID",
                       "expected both it and AWS_SECRET_ACCESS_KEY, got one of them. Set both, or neither "
                       "for public data");
  }
  settings.endpoint = get("AWS_ENDPOINT_URL_S3");
  if (settings.endpoint.empty()) settings.endpoint = get("AWS_ENDPOINT_URL");
  const std::string section = profile == "default" ? profile : "profile " + profile;
  if (settings.endpoint.empty()) settings.endpoint = ini_value(config, section, "endpoint_url");
  std::string region = get("AWS_REGION");
  if (region.empty()) region = get("AWS_DEFAULT_REGION");
  if (region.empty()) region = ini_value(config, section, "region");
  if (!region.empty()) settings.region = region;
  return settings;
}

Environment with_profile(Environment environment, const std::string& profile) {
  if (profile.empty()) return environment;
  return [environment = std::move(environment), profile](const std::string& name) {
    if (name == "AWS_PROFILE") return std::optional<std::string>(profile);
    return name.starts_with("AWS_") && !name.ends_with("_FILE") ? std::nullopt : environment(name);
  };
}

S3Store::S3Store(const std::string& url, const S3Settings& settings, const store::Waiter& waiter,
                 Nanoseconds stall_timeout)
    : HttpStore(options_of(url, settings, stall_timeout), waiter),
      bucket_address_(bucket_address(parse(url).bucket, settings)),
      prefix_(parse(url).prefix) {
  if (!prefix_.empty()) prefix_ += '/';
}

store::ListPage S3Store::list(const std::string& next, Nanoseconds timeout) {
  // Sorted: libcurl signs the query as it is.
  std::string query = "list-type=2&prefix=" + percent_encoded(prefix_, false);
  if (!next.empty()) query = "continuation-token=" + percent_encoded(next, false) + "&" + query;
  const Answer answer = request(url(), bucket_address_ + "/?" + query, false, "", nullptr, timeout);
  check(url(), answer);
  const std::string_view text(answer.text);
  if (text.find("ListBucketResult") == std::string_view::npos)
    throw InvalidInput(url(), "the answer is no list of a bucket. Check the address of the server");
  store::ListPage page;
  size_t at = 0;
  while (const auto entry = next_tag(text, "Contents", at, text.size())) {
    const std::string key = tag_in(*entry, "Key");
    if (!key.starts_with(prefix_)) continue;
    store::ObjectInfo info;
    info.name = key.substr(prefix_.size());
    const std::string size = tag_in(*entry, "Size");
    std::from_chars(size.data(), size.data() + size.size(), info.size);
    info.mtime_ns = time_of(tag_in(*entry, "LastModified"));
    info.identity = tag_in(*entry, "ETag");
    if (store::is_plain_name(info.name)) page.objects.push_back(std::move(info));  // not a folder's mark
  }
  if (tag_in(text, "IsTruncated") == "true") page.next = tag_in(text, "NextContinuationToken");
  return page;
}

}  // namespace chiliad::remote
