#pragma once

#include <cstdint>

#include "chiliad/ops/cpu/rows.h"

namespace chiliad::ops::cpu {

struct Factor {
  const Rows& rows;
  bool transposed = false;  ///< the factor is the matrix of `rows`, transposed
};

struct ProductShape {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
};

/// a [M, K] times b [K, N] in fp32. Every value is one chain of fused multiply-adds over k, in order, in
/// blocks of fixed size: the same bits for any number of threads, and for a row whatever the others are. Each
/// value of `a` is read once for every 2048 columns, each of `b` once. Needs has_kernels().
void gemm(const ProductShape& shape, const Factor& a, const Factor& b, const RowSink& out);

}  // namespace chiliad::ops::cpu
