#include "chiliad/weights/detail/header.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/weights/detail/strict_json.h"

namespace chiliad::weights::detail {
namespace {

constexpr size_t kMaxDepth = 3;  // header, tensor, shape

// Collects one tensor after the other; the offsets still count from the start of the data.
class HeaderReader : public JsonHandler {
 public:
  HeaderReader(int64_t data_bytes, const std::string& place) : data_bytes_(data_bytes), place_(place) {}

  [[nodiscard]] Header& header() { return header_; }

  void on_open(const JsonPath& path, bool is_object) override {
    switch (path.size()) {
      case 0:
        return is_object ? void() : refuse("header: expected an object, got a list");
      case 1:
        return open_entry(path[0], is_object);
      case 2:
        return open_field(path, is_object);
      default:
        refuse_in(path[0], fmt::format("{}: expected whole numbers, got a list or an object", path[1]));
    }
  }

  void on_close(const JsonPath& path) override {
    if (path.size() == 1 && path[0] != kMetadataKey) finish_tensor(path[0]);
  }

  void on_scalar(const JsonPath& path, const JsonScalar& value) override {
    if (path.empty()) refuse("header: expected an object, got a single value");
    if (path.size() == 1) refuse_in(path[0], "expected an object, got a single value");
    if (path[0] == kMetadataKey) return add_metadata(path[1], value);
    if (path.size() == 2) return set_dtype(path, value);
    add_number(path, value);
  }

 private:
  struct Pending {
    std::optional<DType> dtype;
    std::optional<std::vector<int64_t>> shape;
    std::optional<std::vector<int64_t>> offsets;
  };

  [[noreturn]] void refuse(const std::string& message) const { throw CorruptData(place_, message); }
  [[noreturn]] void refuse_in(const std::string& entry, const std::string& message) const {
    const bool is_metadata = entry == kMetadataKey;
    refuse(is_metadata ? fmt::format("{}: {}", entry, message)
                       : fmt::format("tensor {}: {}", quote_name(entry), message));
  }

  void open_entry(const std::string& name, bool is_object) {
    if (!is_object) refuse_in(name, "expected an object, got a list");
    pending_ = {};
  }

  void open_field(const JsonPath& path, bool is_object) {
    if (path[0] == kMetadataKey)
      refuse_in(path[0], fmt::format("{}: expected text, got more", quote_name(path[1])));
    if (path[1] == "dtype") refuse_in(path[0], "dtype: expected text, got a list or an object");
    auto* numbers = numbers_of(path);
    if (is_object) refuse_in(path[0], fmt::format("{}: expected a list, got an object", path[1]));
    numbers->emplace();
  }

  std::optional<std::vector<int64_t>>* numbers_of(const JsonPath& path) {
    if (path[1] == "shape") return &pending_.shape;
    if (path[1] == "data_offsets") return &pending_.offsets;
    refuse_in(path[0], fmt::format("expected dtype, shape and data_offsets, got {}", quote_name(path[1])));
  }

  void add_metadata(const std::string& key, const JsonScalar& value) {
    const auto* text = std::get_if<std::string>(&value);
    if (text == nullptr) {
      refuse_in(std::string(kMetadataKey),
                fmt::format("{}: expected text, got another value", quote_name(key)));
    }
    header_.metadata.emplace(key, *text);
  }

  void set_dtype(const JsonPath& path, const JsonScalar& value) {
    if (path[1] != "dtype") {
      (void)numbers_of(path);
      refuse_in(path[0], fmt::format("{}: expected a list, got a single value", path[1]));
    }
    const auto* text = std::get_if<std::string>(&value);
    if (text == nullptr) refuse_in(path[0], "dtype: expected text, got another value");
    pending_.dtype = dtype_from_name(*text);
    if (!pending_.dtype)
      refuse_in(path[0], fmt::format("dtype: expected a known one, got {}", quote_name(*text)));
  }

  void add_number(const JsonPath& path, const JsonScalar& value) {
    const auto* number = std::get_if<uint64_t>(&value);
    if (number == nullptr || *number > static_cast<uint64_t>(INT64_MAX)) {
      refuse_in(path[0], fmt::format("{}: expected whole numbers in [0, 2^63), got another value", path[1]));
    }
    auto& numbers = **numbers_of(path);
    const bool is_shape = path[1] == "shape";
    if (numbers.size() >= (is_shape ? static_cast<size_t>(kMaxRank) : 2)) {
      refuse_in(path[0], is_shape ? fmt::format("shape: expected at most {} axes, got more", kMaxRank)
                                  : "data_offsets: expected two numbers, got more");
    }
    numbers.push_back(static_cast<int64_t>(*number));
  }

  void finish_tensor(const std::string& name) {
    if (!pending_.dtype) refuse_in(name, "expected a dtype, got none");
    if (!pending_.shape) refuse_in(name, "expected a shape, got none");
    if (!pending_.offsets || pending_.offsets->size() != 2)
      refuse_in(name, "expected two data_offsets, got fewer");
    TensorEntry tensor{name, *pending_.dtype, Shape(std::move(*pending_.shape)), (*pending_.offsets)[0],
                       (*pending_.offsets)[1]};
    check_range(tensor);
    header_.tensors.push_back(std::move(tensor));
  }

  void check_range(const TensorEntry& tensor) const {
    if (tensor.end < tensor.begin) {
      refuse_in(tensor.name,
                fmt::format("data_offsets: expected begin <= end, got [{}, {}]", tensor.begin, tensor.end));
    }
    const auto count = tensor.shape.checked_count();
    int64_t bytes = 0;
    if (!count || __builtin_mul_overflow(*count, dtype_bytes(tensor.dtype), &bytes)) {
      refuse_in(tensor.name,
                fmt::format("shape: expected a size below 2^63, got {}", tensor.shape.to_string()));
    }
    if (bytes != tensor.num_bytes()) {
      refuse_in(tensor.name,
                fmt::format("data_offsets: expected {} bytes for {} {}, got {}", bytes,
                            dtype_name(tensor.dtype), tensor.shape.to_string(), tensor.num_bytes()));
    }
    if (tensor.end > data_bytes_) {
      refuse_in(tensor.name,
                fmt::format("data_offsets: expected an end within the {} bytes of data, got {}. The file is "
                            "cut or damaged",
                            data_bytes_, tensor.end));
    }
  }

  int64_t data_bytes_;
  const std::string& place_;
  Header header_;
  Pending pending_;
};

void check_coverage(const std::vector<TensorEntry>& tensors, int64_t data_bytes, const std::string& place) {
  int64_t covered = 0;
  for (const TensorEntry& tensor : tensors) {
    if (tensor.begin < covered) {
      throw CorruptData(place,
                        fmt::format("tensor {}: expected bytes of its own from {}, got an overlap from {}",
                                    quote_name(tensor.name), covered, tensor.begin));
    }
    if (tensor.begin > covered) {
      throw CorruptData(place,
                        fmt::format("tensor {}: expected to begin at byte {} of the data, got {}: a hole",
                                    quote_name(tensor.name), covered, tensor.begin));
    }
    covered = tensor.end;
  }
  if (covered != data_bytes) {
    throw CorruptData(place,
                      fmt::format("expected the file to end with its last tensor, got {} bytes after it",
                                  data_bytes - covered));
  }
}

}  // namespace

Header parse_header(std::string_view text, int64_t data_start, int64_t data_bytes, const std::string& place) {
  if (text.empty() || text.front() != '{') {
    throw CorruptData(
        place, fmt::format("header: expected JSON beginning with {{, got {}", quote_name(text.substr(0, 8))));
  }
  const size_t last = text.find_last_not_of(' ');
  if (text[last] != '}') {
    throw CorruptData(
        place, "header: expected JSON ending with } and padded with spaces, got other bytes behind it");
  }
  HeaderReader reader(data_bytes, place);
  read_strict_json(text.substr(0, last + 1), place, "header", kMaxDepth, reader);
  Header header = std::move(reader.header());
  std::stable_sort(header.tensors.begin(), header.tensors.end(),
                   [](const TensorEntry& a, const TensorEntry& b) {
                     return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
                   });
  check_coverage(header.tensors, data_bytes, place);
  for (TensorEntry& tensor : header.tensors) {
    tensor.begin += data_start;
    tensor.end += data_start;
  }
  return header;
}

}  // namespace chiliad::weights::detail
