// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/rowwise/rotary.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/rowwise/rotary.cpp"
#include "vitrail/kernels/isa/highway-inl.h"
// After highway-inl.h: what is compiled for each target.
#include "vitrail/kernels/isa/vector_memory-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {

// Rotates `heads` heads of one token, whose cosines and sines begin `table_step` elements after those of the head
// before.
void rotate_halves(const float* x, float* y, int64_t heads, int64_t dim, const float* table, int64_t table_step,
                   float sign) {
  const hn::ScalableTag<float> d;
  const auto factor = hn::Set(d, sign);
  const int64_t half = dim / 2;
  for (int64_t h = 0; h < heads; ++h, x += dim, y += dim, table += table_step) {
    for_each_vector(d, half, [&](int64_t i, auto memory) HWY_ATTR {
      const auto a = memory.load(x + i), b = memory.load(x + half + i);
      const auto cos = memory.load(table + i), sin = hn::Mul(factor, memory.load(table + half + i));
      memory.store(hn::NegMulAdd(b, sin, hn::Mul(a, cos)), y + i);
      memory.store(hn::MulAdd(a, sin, hn::Mul(b, cos)), y + half + i);
    });
  }
}

void rotate_interleaved(const float* x, float* y, int64_t heads, int64_t dim, const float* table, int64_t table_step,
                        float sign) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto factor = hn::Set(d, sign);
  const int64_t half = dim / 2;
  for (int64_t h = 0; h < heads; ++h, x += dim, y += dim, table += table_step) {
    int64_t i = 0;
    for (; i + lanes <= half; i += lanes) {
      hn::Vec<decltype(d)> a, b;
      hn::LoadInterleaved2(d, x + 2 * i, a, b);
      const auto cos = hn::LoadU(d, table + i), sin = hn::Mul(factor, hn::LoadU(d, table + half + i));
      hn::StoreInterleaved2(hn::NegMulAdd(b, sin, hn::Mul(a, cos)), hn::MulAdd(a, sin, hn::Mul(b, cos)), d, y + 2 * i);
    }
    for (; i < half; ++i) {
      const float a = x[2 * i], b = x[2 * i + 1], cos = table[i], sin = sign * table[half + i];
      y[2 * i] = a * cos - b * sin;
      y[2 * i + 1] = b * cos + a * sin;
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>

#include "vitrail/base/parallel.h"
#include "vitrail/kernels/rowwise/scalar_rowwise_internal.h"

namespace vitrail::kernels {
namespace {

VITRAIL_EXPORT(rotate_halves, scalar::rotate_halves<float>);
VITRAIL_EXPORT(rotate_interleaved, scalar::rotate_interleaved<float>);

// The rows of a fused projection, one per token.  rotate: a kernel for the heads of one token.
template <class T, class Rotate>
void rotate_tokens(const RotaryArgsOf<T>& args, Rotate* rotate) {
  const int64_t part = args.heads * args.head_dim, table_step = args.table_head_stride;
  const T sign = args.inverse ? T(-1) : T(1);
  parallel_for(0, args.batch * args.tokens, 1 + 8192 / (part + 1), [&](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; ++row) {
      const int64_t token = row % args.tokens - args.prefix;
      const T* const x = args.x + row * 3 * part;
      T* const y = args.y + row * 3 * part;
      if (token < 0) {
        if (x != y) std::copy_n(x, 3 * part, y);
        continue;
      }
      const T* const table = args.table + row / args.tokens * args.table_batch_stride + token * args.head_dim;
      rotate(x, y, args.heads, args.head_dim, table, table_step, sign);
      rotate(x + part, y + part, args.heads, args.head_dim, table, table_step, sign);
      if (x != y) std::copy_n(x + 2 * part, part, y + 2 * part);
    }
  });
}

}  // namespace

void rotary(const RotaryArgs& args) {
  const bool halves = args.pairs == RotaryPairs::halves;
  rotate_tokens(args, halves ? &VITRAIL_DISPATCH(rotate_halves) : &VITRAIL_DISPATCH(rotate_interleaved));
}

void rotary(const RotaryArgsOf<double>& args) {
  const bool halves = args.pairs == RotaryPairs::halves;
  rotate_tokens(args, halves ? scalar::rotate_halves<double> : scalar::rotate_interleaved<double>);
}

}  // namespace vitrail::kernels
#endif
