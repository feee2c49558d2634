#include "chiliad/ops/cpu/values.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "chiliad/base/error.h"
#include "chiliad/ops/cpu/parallel.h"
#include "chiliad/ops/cpu/simd.h"
#include "chiliad/ops/cpu/tensor_rows.h"

CHILIAD_SIMD_BEGIN
namespace chiliad::ops::cpu {
namespace {

constexpr int64_t kValuesAPart = 1 << 15;
constexpr int64_t kRowsAPart = 256;

enum Slot { kCos = 8, kSin };

template <typename T>
T* values_of(const at::Tensor& tensor) {
  return static_cast<T*>(tensor.data_ptr());
}

/// apply(T{}) with the value type of the tensor.
template <typename Apply>
void with_type(const at::Tensor& tensor, const Apply& apply) {
  if (tensor.scalar_type() == at::kBFloat16) {
    apply(Bf16{});
  } else {
    apply(float{});
  }
}

/// work(begin, end) for parts of fixed size of [0, count).
template <typename Work>
void for_parts(int64_t count, int64_t size, const Work& work) {
  for_each_part((count + size - 1) / size,
                [&](int64_t part) { work(part * size, std::min(count, (part + 1) * size)); });
}

/// As it is once it was stored.
Lanes rounded(Lanes x, float /*type*/) {
  return x;
}
Lanes rounded(Lanes x, Bf16 /*type*/) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(to_bf16(x)), 16));
}

template <typename T>
float rms_row(const T* x, const T* weight, int64_t width, float eps, T* out) {
  Lanes squares = _mm512_setzero_ps();
  for_lanes(width, [&](int64_t i, __mmask16 lanes) {
    const Lanes value = load(x + i, lanes);
    squares = _mm512_fmadd_ps(value, value, squares);
  });
  const float scale = 1.0F / __builtin_sqrtf(sum(squares) / static_cast<float>(width) + eps);
  for_lanes(width, [&](int64_t i, __mmask16 lanes) {
    const Lanes normed =
        rounded(_mm512_mul_ps(load(x + i, lanes), all(scale)), T{});  // as the reference has it
    store(out + i, _mm512_mul_ps(normed, load(weight + i, lanes)), lanes);
  });
  return scale;
}

template <typename T>
void rms_row_backward(const T* x, const T* weight, const T* gradient, float scale, int64_t width, T* of_x,
                      float* of_weight) {
  Lanes along = _mm512_setzero_ps();
  for_lanes(width, [&](int64_t i, __mmask16 lanes) {
    const Lanes normed = _mm512_mul_ps(load(x + i, lanes), all(scale));
    const Lanes upstream = load(gradient + i, lanes);
    store(of_weight + i, _mm512_fmadd_ps(upstream, normed, load(of_weight + i, lanes)), lanes);
    along = _mm512_fmadd_ps(_mm512_mul_ps(upstream, load(weight + i, lanes)), normed, along);
  });
  const Lanes mean = all(sum(along) / static_cast<float>(width));
  for_lanes(width, [&](int64_t i, __mmask16 lanes) {
    const Lanes normed = _mm512_mul_ps(load(x + i, lanes), all(scale));
    const Lanes inner = _mm512_mul_ps(load(gradient + i, lanes), load(weight + i, lanes));
    store(of_x + i, _mm512_mul_ps(_mm512_fnmadd_ps(normed, mean, inner), all(scale)), lanes);
  });
}

/// The angles of a position for pairs of lanes: cos twice, and sin with the sign that a lane's neighbour has.
void spread_angles(const float* cos, const float* sin, int64_t pairs, bool back, float* cosines,
                   float* sines) {
  for (int64_t i = 0; i < pairs; ++i) {
    const float turn = back ? -sin[i] : sin[i];
    cosines[2 * i] = cosines[2 * i + 1] = cos[i];
    sines[2 * i] = -turn;
    sines[2 * i + 1] = turn;
  }
}

}  // namespace

at::Tensor gelu_forward(const at::Tensor& x) {
  at::Tensor out = at::empty_like(x);
  with_type(x, [&](auto type) {
    using T = decltype(type);
    for_parts(x.numel(), kValuesAPart, [&](int64_t begin, int64_t end) {
      const T* from = values_of<T>(x) + begin;
      T* to = values_of<T>(out) + begin;
      for_lanes(end - begin,
                [&](int64_t i, __mmask16 lanes) { store(to + i, gelu(load(from + i, lanes)), lanes); });
    });
  });
  return out;
}

at::Tensor gelu_backward(const at::Tensor& x, const at::Tensor& gradient) {
  at::Tensor out = at::empty_like(x);
  with_type(x, [&](auto type) {
    using T = decltype(type);
    const int64_t width = x.size(1);
    for_parts(x.size(0), std::max<int64_t>(1, kValuesAPart / width), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* from = values_of<T>(x) + row * width;
        const T* upstream = values_of<T>(gradient) + row * gradient.stride(0);
        T* to = values_of<T>(out) + row * width;
        for_lanes(width, [&](int64_t i, __mmask16 lanes) {
          store(to + i, _mm512_mul_ps(load(upstream + i, lanes), gelu_slope(load(from + i, lanes))), lanes);
        });
      }
    });
  });
  return out;
}

RmsNormOutput rms_norm_forward(const at::Tensor& x, const at::Tensor& weight, double eps) {
  const int64_t width = x.size(1);
  RmsNormOutput result{at::empty_like(x), at::empty({x.size(0)}, x.options().dtype(at::kFloat))};
  with_type(x, [&](auto type) {
    using T = decltype(type);
    for_parts(x.size(0), kRowsAPart, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        values_of<float>(result.scale)[row] =
            rms_row(values_of<T>(x) + row * width, values_of<T>(weight), width, static_cast<float>(eps),
                    values_of<T>(result.out) + row * width);
      }
    });
  });
  return result;
}

std::pair<at::Tensor, at::Tensor> rms_norm_backward(const at::Tensor& x, const at::Tensor& weight,
                                                    const at::Tensor& scale, const at::Tensor& gradient) {
  const int64_t width = x.size(1);
  const int64_t parts = (x.size(0) + kRowsAPart - 1) / kRowsAPart;
  at::Tensor of_x = at::empty_like(x);
  const at::Tensor sums = at::zeros({parts, width}, x.options().dtype(at::kFloat));  // in order of the parts
  with_type(x, [&](auto type) {
    using T = decltype(type);
    for_parts(x.size(0), kRowsAPart, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        rms_row_backward(values_of<T>(x) + row * width, values_of<T>(weight),
                         values_of<T>(gradient) + row * width, values_of<float>(scale)[row], width,
                         values_of<T>(of_x) + row * width,
                         values_of<float>(sums) + begin / kRowsAPart * width);
      }
    });
  });
  return {of_x, sums.sum(0).to(weight.scalar_type())};
}

at::Tensor turn_pairs(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin, bool back) {
  const int64_t tokens = x.size(1);
  const int64_t width = x.size(2);
  const int64_t head = 2 * cos.size(1);
  CHILIAD_CHECK_EQ(width % head, 0);
  CHILIAD_CHECK_EQ(cos.size(0), tokens);
  at::Tensor out = at::empty_like(x);
  with_type(x, [&](auto type) {
    using T = decltype(type);
    for_each_part(tokens, [&](int64_t token) {
      float* cosines = scratch(kCos, head);
      float* sines = scratch(kSin, head);
      spread_angles(values_of<float>(cos) + token * head / 2, values_of<float>(sin) + token * head / 2,
                    head / 2, back, cosines, sines);
      for (int64_t item = 0; item < x.size(0); ++item) {
        for (int64_t first = 0; first < width; first += head) {
          const T* from = values_of<T>(x) + (item * tokens + token) * width + first;
          T* to = values_of<T>(out) + (item * tokens + token) * width + first;
          for_lanes(head, [&](int64_t i, __mmask16 lanes) {
            const Lanes value = load(from + i, lanes);
            const Lanes other = _mm512_permute_ps(value, 0xB1);
            const Lanes turned = _mm512_mul_ps(other, load(sines + i, lanes));
            store(to + i, _mm512_fmadd_ps(value, load(cosines + i, lanes), turned), lanes);
          });
        }
      }
    });
  });
  return out;
}

}  // namespace chiliad::ops::cpu
CHILIAD_SIMD_END
