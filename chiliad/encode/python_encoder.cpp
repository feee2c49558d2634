#include "chiliad/encode/python_encoder.h"

#include <ATen/ATen.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "chiliad/base/error.h"
#include "chiliad/base/unique_fd.h"
#include "chiliad/ipc/child_process.h"

namespace chiliad::encode {
namespace {

constexpr int kReplyDeadlineMs = 30 * 60 * 1000;  // one batch, on a slow machine
constexpr uint32_t kMaxRank = 5;
constexpr uint32_t kMaxValues = 1U << 28;

// All numbers are uint32, little-endian.
// Request: 0, count, then length and bytes of each text; or 1, count, height, width, and the pixels.
// Reply: 1, length, message; or 0, then of each item a number of arrays, and of each its rank, sizes and
// float32 values.
constexpr const char* kHost = R"PY(
import importlib.util, os, struct, sys, traceback
source = os.fdopen(int(sys.argv[2]), "rb")
sink = os.fdopen(int(sys.argv[3]), "wb")
os.dup2(2, 1)  # what the encoder prints is no reply

def read(count):
    data = source.read(count)
    if len(data) != count:
        sys.exit(0)
    return data

def number():
    return struct.unpack("<I", read(4))[0]

def buffers(item):
    parts = item if isinstance(item, (tuple, list)) else (item,)
    out = [struct.pack("<I", len(parts))]
    for part in parts:
        view = memoryview(part)
        if view.format != "f":
            raise TypeError("encode: expected float32 buffers, got format %r. Convert with .astype('float32')" % view.format)
        if not view.c_contiguous:
            view = memoryview(view.tobytes()).cast("f", list(view.shape))
        out.append(struct.pack("<I%dI" % view.ndim, view.ndim, *view.shape))
        out.append(view.tobytes())
    return out

def load():
    path, name = sys.argv[1].rsplit(":", 1)
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    spec = importlib.util.spec_from_file_location("chiliad_encoder", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)()

encoder = None
while True:
    kind, count = number(), number()
    if kind == 0:
        items = [read(number()).decode("utf-8", "replace") for _ in range(count)]
    else:
        height, width = number(), number()
        items = memoryview(read(count * height * width * 3)).cast("B", [count, height, width, 3])
    try:
        encoder = encoder or load()
        results = list(encoder.encode(items))
        if len(results) != count:
            raise ValueError("encode: expected %d results, got %d. Return one an item" % (count, len(results)))
        reply = [struct.pack("<I", 0)]
        for result in results:
            reply += buffers(result)
    except Exception:
        message = traceback.format_exc().strip().encode()
        reply = [struct.pack("<II", 1, len(message)), message]
    for piece in reply:
        sink.write(piece)
    sink.flush()
)PY";

/// The process and the two pipes to it.
class PythonHost {
 public:
  explicit PythonHost(std::string encoder) : encoder_(std::move(encoder)) {
    std::signal(SIGPIPE, SIG_IGN);
    auto [their_in, our_out] = make_pipe();
    auto [our_in, their_out] = make_pipe();
    const char* python = std::getenv("CHILIAD_PYTHON");
    ipc::SpawnOptions options;
    options.argv = {"/usr/bin/env",
                    python == nullptr ? "python3" : python,
                    "-c",
                    kHost,
                    encoder_,
                    std::to_string(their_in.get()),
                    std::to_string(their_out.get())};
    options.inherit = {their_in.get(), their_out.get()};
    child_.emplace(ipc::ChildProcess::spawn(options));
    to_ = std::move(our_out);
    from_ = std::move(our_in);
  }

  /// Arrays of each item.
  std::vector<std::vector<at::Tensor>> ask(const std::string& request, size_t count) {
    const std::lock_guard lock(mutex_);
    write(request);
    if (number() != 0) {
      std::string message(number(), ' ');
      read(std::as_writable_bytes(std::span(message)));
      throw InvalidInput(encoder_, fmt::format("Python says:\n{}", message));
    }
    std::vector<std::vector<at::Tensor>> items(count);
    for (auto& item : items) {
      const uint32_t arrays = number();
      for (uint32_t i = 0; i < arrays; ++i) item.push_back(array());
    }
    return items;
  }

 private:
  static std::pair<UniqueFd, UniqueFd> make_pipe() {
    std::array<int, 2> fds{};
    if (::pipe2(fds.data(), O_CLOEXEC) != 0)
      throw Unavailable("pipe", fmt::format("cannot be made: {}", std::strerror(errno)));
    return {UniqueFd(fds[0]), UniqueFd(fds[1])};
  }
  [[noreturn]] void fail(const char* what) {
    const auto status = child_->wait(std::chrono::seconds(1));
    throw Unavailable(encoder_,
                      fmt::format("{}; the Python process {}", what,
                                  status.has_value() ? "ended with " + status->to_string() : "is there"));
  }
  void write(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto done = ::write(to_.get(), bytes.data(), bytes.size());
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) fail("cannot be written to");
      bytes.remove_prefix(static_cast<size_t>(done));
    }
  }
  void read(std::span<std::byte> out) {
    while (!out.empty()) {
      pollfd entry{from_.get(), POLLIN, 0};
      const int ready = ::poll(&entry, 1, kReplyDeadlineMs);
      if (ready < 0 && errno == EINTR) continue;
      if (ready == 0) fail("did not answer for 30 minutes");
      const auto got = ::read(from_.get(), out.data(), out.size());
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) fail("ended before its answer");
      out = out.subspan(static_cast<size_t>(got));
    }
  }
  uint32_t number() {
    uint32_t value = 0;
    read(std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }
  at::Tensor array() {
    const uint32_t rank = number();
    std::vector<int64_t> sizes;
    int64_t values = 1;
    for (uint32_t axis = 0; axis < std::min(rank, kMaxRank); ++axis) {
      sizes.push_back(number());
      values *= sizes.back();
    }
    if (rank > kMaxRank || values > kMaxValues)
      throw InvalidInput(encoder_,
                         fmt::format("encode: expected arrays of at most {} axes and {} values, got more",
                                     kMaxRank, kMaxValues));
    at::Tensor tensor = at::empty(sizes, at::kFloat);
    read(std::as_writable_bytes(std::span(tensor.mutable_data_ptr<float>(), static_cast<size_t>(values))));
    return tensor;
  }

  std::string encoder_;
  std::mutex mutex_;  // one request at a time
  std::optional<ipc::ChildProcess> child_;
  UniqueFd to_;
  UniqueFd from_;
};

void put(std::string& out, size_t value) {
  const auto number = static_cast<uint32_t>(value);
  out.append(reinterpret_cast<const char*>(&number), sizeof number);
}

[[noreturn]] void refuse_shape(const std::string& encoder, const char* expected, const at::Tensor& got) {
  std::string sizes;
  for (const int64_t size : got.sizes()) sizes += fmt::format("{}{}", sizes.empty() ? "" : ", ", size);
  throw InvalidInput(encoder, fmt::format("encode: expected {}, got [{}]", expected, sizes));
}

class PythonCaptions final : public CaptionEncoder {
 public:
  explicit PythonCaptions(const std::string& encoder) : encoder_(encoder), host_(encoder) {}

  std::vector<EncodedText> encode(const std::vector<std::string>& texts) override {
    std::string request;
    put(request, 0);
    put(request, texts.size());
    for (const auto& text : texts) {
      put(request, text.size());
      request += text;
    }
    std::vector<EncodedText> encoded;
    for (auto& item : host_.ask(request, texts.size())) {
      if (item.empty() || item.size() > 2 || item[0].dim() != 2 || item[0].size(0) == 0)
        refuse_shape(encoder_, "[T, D] of a text, with T of at least 1",
                     item.empty() ? at::empty({0}) : item[0]);
      encoded.push_back({item[0], item.size() == 2 ? item[1].flatten() : at::Tensor()});
    }
    return encoded;
  }
  int64_t count(const std::string& text) const override { return std::ssize(text); }

 private:
  std::string encoder_;
  PythonHost host_;
};

class PythonPictures final : public PictureEncoder {
 public:
  explicit PythonPictures(const std::string& encoder) : encoder_(encoder), host_(encoder) {}

  at::Tensor encode(const at::Tensor& pictures) override {
    const at::Tensor dense = pictures.contiguous();
    std::string request;
    put(request, 1);
    for (int64_t axis = 0; axis < 3; ++axis) put(request, static_cast<size_t>(dense.size(axis)));
    request.append(reinterpret_cast<const char*>(dense.const_data_ptr<uint8_t>()),
                   static_cast<size_t>(dense.numel()));
    std::vector<at::Tensor> latents;
    for (auto& item : host_.ask(request, static_cast<size_t>(dense.size(0)))) {
      const bool fits =
          item.size() == 1 && (item[0].dim() == 3 || (item[0].dim() == 4 && item[0].size(0) == 2));
      if (!fits)
        refuse_shape(encoder_, "[C, h, w] or [2, C, h, w] of a picture",
                     item.empty() ? at::empty({0}) : item[0]);
      latents.push_back(item[0]);
    }
    return at::stack(latents);
  }

 private:
  std::string encoder_;
  PythonHost host_;
};

}  // namespace

std::unique_ptr<CaptionEncoder> open_python_captions(const std::string& encoder) {
  return std::make_unique<PythonCaptions>(encoder);
}

std::unique_ptr<PictureEncoder> open_python_pictures(const std::string& encoder) {
  return std::make_unique<PythonPictures>(encoder);
}

}  // namespace chiliad::encode
