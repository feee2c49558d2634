#include "chiliad/store/detail/cache_frames.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "chiliad/base/error_kinds.h"
#include "chiliad/base/json_text.h"

namespace chiliad::store::detail {
namespace {

using Json = nlohmann::json;

template <typename Read>
auto parsed(const std::string& body, const Read& read) {
  try {
    return read(parse_json<Json>(body));
  } catch (const Json::exception& error) {
    throw CorruptData("block cache: frame", error.what());
  }
}

// Names of files need not be UTF-8, which JSON must be.
Json bytes_of(const std::string& text) {
  return Json::binary({text.begin(), text.end()});
}

std::string text_of(const Json& json) {
  const auto& bytes = json.at("bytes");
  std::string text;
  for (const Json& byte : bytes) text += static_cast<char>(byte.get<uint8_t>());
  return text;
}

}  // namespace

std::string write_frame(const WantedFrame& frame) {
  Json parts = Json::array();
  for (const PartCheck& part : frame.spec.parts) {
    parts.push_back(part.offset);
    parts.push_back(part.length);
    parts.push_back(part.checksum);
  }
  return json_text(Json{{"store", frame.spec.store},
                        {"object", bytes_of(frame.spec.object)},
                        {"offset", frame.spec.offset},
                        {"length", frame.spec.length},
                        {"parts", std::move(parts)},
                        {"from", frame.from},
                        {"wanted", frame.length}});
}

WantedFrame read_wanted(const std::string& body) {
  return parsed(body, [](const Json& json) {
    WantedFrame frame;
    frame.spec.store = json.at("store").get<std::string>();
    frame.spec.object = text_of(json.at("object"));
    frame.spec.offset = json.at("offset").get<int64_t>();
    frame.spec.length = json.at("length").get<int64_t>();
    const Json& parts = json.at("parts");
    for (size_t i = 0; i + 2 < parts.size(); i += 3) {
      frame.spec.parts.push_back(
          {parts[i].get<int64_t>(), parts[i + 1].get<int64_t>(), parts[i + 2].get<uint64_t>()});
    }
    frame.from = json.at("from").get<int64_t>();
    frame.length = json.at("wanted").get<int64_t>();
    constexpr int64_t kMost = int64_t{1} << 40;
    const BlockSpec& spec = frame.spec;
    const bool fits = spec.offset >= 0 && spec.offset < kMost && spec.length > 0 && spec.length < kMost &&
                      frame.from >= spec.offset && frame.length >= 0 &&
                      frame.length <= spec.length - (frame.from - spec.offset);
    if (!fits) throw CorruptData("block cache: frame", "the wanted range is not in its block");
    return frame;
  });
}

std::string write_frame(const BlockFrame& frame) {
  return json_text(Json{{"start", frame.start}, {"length", frame.length}, {"lease", frame.lease}});
}

BlockFrame read_block(const std::string& body) {
  return parsed(body, [](const Json& json) {
    return BlockFrame{json.at("start").get<int64_t>(), json.at("length").get<int64_t>(),
                      json.at("lease").get<int64_t>()};
  });
}

std::string write_hello(int64_t held_bytes) {
  return json_text(Json{{"held_bytes", held_bytes}});
}

int64_t read_hello(const std::string& body) {
  return parsed(body, [](const Json& json) { return json.at("held_bytes").get<int64_t>(); });
}

std::string write_error(const std::exception& error) {
  const auto* own = dynamic_cast<const Error*>(&error);
  std::string message = error.what();
  const std::string place = own == nullptr ? "block cache" : own->place();
  if (message.starts_with(place + ": ")) message.erase(0, place.size() + 2);
  const Json json{{"kind", kind_name(kind_of(error))}, {"place", place}, {"message", message}};
  return json_text_replacing(json);
}

void throw_frame(const std::string& body) {
  const auto [kind, place, message] = parsed(body, [](const Json& json) {
    return std::tuple(json.at("kind").get<std::string>(), json.at("place").get<std::string>(),
                      json.at("message").get<std::string>());
  });
  throw_error(kind_from_name(kind), place, message);
}

}  // namespace chiliad::store::detail
