#include "chiliad/weights/float_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "chiliad/base/error.h"

namespace chiliad::weights {
namespace {

/// Exact: every fp16 value is one of fp32.
float from_fp16(uint16_t bits) {
  const bool negative = (bits & 0x8000U) != 0;
  const uint32_t exponent = (bits >> 10U) & 0x1FU;
  const auto fraction = static_cast<float>(bits & 0x3FFU);
  float value = 0.0F;
  if (exponent == 0) {
    value = std::ldexp(fraction, -24);
  } else if (exponent == 31) {
    value = fraction == 0.0F ? INFINITY : NAN;
  } else {
    value = std::ldexp(fraction + 1024.0F, static_cast<int>(exponent) - 25);
  }
  return negative ? -value : value;
}

template <typename Stored, typename Convert>
void convert(std::span<const std::byte> bytes, std::span<float> out, Convert to_float) {
  for (size_t i = 0; i < out.size(); ++i) {
    Stored stored;
    std::memcpy(&stored, bytes.data() + i * sizeof(Stored), sizeof(Stored));
    out[i] = to_float(stored);
  }
}

}  // namespace

void read_floats(const WeightSource& source, std::string_view key, int64_t first, std::span<float> out,
                 Check check) {
  const TensorEntry* entry = source.find(key);
  CHILIAD_CHECK(entry != nullptr);
  const int64_t size = dtype_bytes(entry->dtype);
  std::vector<std::byte> bytes(out.size() * static_cast<size_t>(size));
  source.read_part(key, first * size, bytes);
  switch (entry->dtype) {
    case DType::kF64:
      convert<double>(bytes, out, [](double value) { return static_cast<float>(value); });
      break;
    case DType::kF32:
      convert<float>(bytes, out, [](float value) { return value; });
      break;
    case DType::kF16:
      convert<uint16_t>(bytes, out, from_fp16);
      break;
    case DType::kBF16:
      convert<uint16_t>(bytes, out,
                        [](uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16U); });
      break;
    default:
      throw InternalError(source.path().string(), "a tensor that holds no numbers");
  }
  if (check == Check::kNothing ||
      std::all_of(out.begin(), out.end(), [](float value) { return std::isfinite(value); }))
    return;
  throw CorruptData(source.path().string(),
                    fmt::format("tensor '{}' has values that are NaN or infinite in fp32. Fetch the file "
                                "again, or take weights of an earlier step",
                                key));
}

}  // namespace chiliad::weights
