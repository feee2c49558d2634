#include <cmath>
#include <numbers>

#include "chiliad/image/detail/resample.h"

namespace chiliad::image::detail {
namespace {

double sinc(double x) {
  if (x == 0.0) return 1.0;
  const double angle = x * std::numbers::pi;
  return std::sin(angle) / angle;
}

double box(double x) {
  return x > -0.5 && x <= 0.5 ? 1.0 : 0.0;
}

double bilinear(double x) {
  const double distance = std::abs(x);
  return distance < 1.0 ? 1.0 - distance : 0.0;
}

double hamming(double x) {
  const double distance = std::abs(x);
  if (distance >= 1.0) return 0.0;
  // Single-precision constants, as in Pillow.
  return distance == 0.0
             ? 1.0
             : sinc(distance) * (double{0.54F} + double{0.46F} * std::cos(distance * std::numbers::pi));
}

double bicubic(double x) {
  constexpr double kSharpness = -0.5;
  const double d = std::abs(x);
  if (d < 1.0) return ((kSharpness + 2.0) * d - (kSharpness + 3.0)) * d * d + 1.0;
  return d < 2.0 ? (((d - 5.0) * d + 8.0) * d - 4.0) * kSharpness : 0.0;
}

double lanczos(double x) {
  return x >= -3.0 && x < 3.0 ? sinc(x) * sinc(x / 3.0) : 0.0;
}

struct Kernel {
  double (*value)(double);
  double support;  ///< source samples each side at scale 1
};

Kernel kernel_of(Filter filter) {
  switch (filter) {
    case Filter::kBox:
      return {box, 0.5};
    case Filter::kBilinear:
      return {bilinear, 1.0};
    case Filter::kHamming:
      return {hamming, 1.0};
    case Filter::kBicubic:
      return {bicubic, 2.0};
    case Filter::kLanczos:
      return {lanczos, 3.0};
  }
  CHILIAD_CHECK(false, "unknown filter {}", static_cast<int>(filter));
  return {};
}

int32_t to_fixed(double weight) {
  const double scaled = weight * (1 << kWeightBits);
  return static_cast<int32_t>(weight < 0 ? scaled - 0.5 : scaled + 0.5);
}

}  // namespace

AxisWeights axis_weights(const Axis& axis, Filter filter) {
  const Kernel kernel = kernel_of(filter);
  const double scale = static_cast<double>(axis.end - axis.begin) / axis.outputs;
  const double stretch = scale < 1.0 ? 1.0 : scale;  // the filter widens only where the picture shrinks
  const double reach = kernel.support * stretch;
  const double inverse = 1.0 / stretch;
  const auto num_outputs = static_cast<size_t>(axis.num_outputs);
  AxisWeights made;
  made.num_taps = static_cast<int32_t>(std::ceil(reach)) * 2 + 1;
  made.first.resize(num_outputs);
  made.count.resize(num_outputs);
  made.weights.resize(num_outputs * static_cast<size_t>(made.num_taps));
  std::vector<double> exact(static_cast<size_t>(made.num_taps));
  for (int32_t i = 0; i < axis.num_outputs; ++i) {
    const double centre = axis.begin + (axis.first_output + i + 0.5) * scale;
    const int32_t first = std::max(0, static_cast<int32_t>(centre - reach + 0.5));
    const int32_t last = std::min(axis.source, static_cast<int32_t>(centre + reach + 0.5));
    double total = 0.0;
    for (int32_t x = first; x < last; ++x)
      total += exact[x - first] = kernel.value((x - centre + 0.5) * inverse);
    int32_t* weights = made.weights.data() + int64_t{i} * made.num_taps;
    for (int32_t k = 0; k < last - first; ++k)
      weights[k] = to_fixed(total != 0.0 ? exact[k] / total : exact[k]);
    made.first[i] = first;
    made.count[i] = last - first;
  }
  return made;
}

TapPairs tap_pairs(const AxisWeights& axis, bool aligned) {
  TapPairs pairs;
  pairs.first = axis.first;
  for (size_t i = 0; i < axis.first.size(); ++i) {
    const int32_t lead = aligned ? axis.first[i] & 1 : 0;
    pairs.first[i] -= lead;
    pairs.num_pairs = std::max(pairs.num_pairs, (lead + axis.count[i] + 1) / 2);
  }
  pairs.high.resize(axis.first.size() * static_cast<size_t>(pairs.num_pairs));
  pairs.low.resize(pairs.high.size());
  for (size_t i = 0; i < axis.first.size(); ++i) {
    const int32_t lead = axis.first[i] - pairs.first[i];
    const int32_t* weights = axis.of(static_cast<int32_t>(i));
    for (int32_t k = 0; k < axis.count[i]; ++k) {
      const size_t at = i * static_cast<size_t>(pairs.num_pairs) + static_cast<size_t>((lead + k) / 2);
      const int shift = ((lead + k) & 1) * 16;
      const auto high = static_cast<uint16_t>(weights[k] >> kLowBits);
      const auto low = static_cast<uint16_t>(weights[k] & ((1 << kLowBits) - 1));
      pairs.high[at] |= static_cast<int32_t>(uint32_t{high} << shift);
      pairs.low[at] |= static_cast<int32_t>(uint32_t{low} << shift);
    }
  }
  return pairs;
}

}  // namespace chiliad::image::detail
