// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/rowwise/elementwise.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/rowwise/elementwise.cpp"
#include "vitrail/kernels/isa/highway-inl.h"
// After highway-inl.h: what is compiled for each target.
#include "vitrail/kernels/isa/vector_memory-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {

// out[i] = f(a[i], b[i])
template <class F>
HWY_INLINE void combine(const float* a, const float* b, float* out, int64_t n, F&& f) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(f(hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, out + i);
  if (i < n) store_first(d, f(load_first(d, a + i, n - i), load_first(d, b + i, n - i)), out + i, n - i);
}

void add_span(const float* a, const float* b, float* out, int64_t n) {
  combine(a, b, out, n, [](auto x, auto y) HWY_ATTR { return hn::Add(x, y); });
}
void multiply_span(const float* a, const float* b, float* out, int64_t n) {
  combine(a, b, out, n, [](auto x, auto y) HWY_ATTR { return hn::Mul(x, y); });
}
void multiply_add_span(const float* a, const float* b, float* out, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), hn::LoadU(d, out + i)), d, out + i);
  }
  for (; i < n; ++i) out[i] += a[i] * b[i];
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>
#include <vector>

#include "vitrail/base/parallel.h"
#include "vitrail/kernels/rowwise/scalar_rowwise_internal.h"

namespace vitrail::kernels {
namespace {

VITRAIL_EXPORT(add_span, scalar::add_span);
VITRAIL_EXPORT(multiply_span, scalar::multiply_span);
VITRAIL_EXPORT(multiply_add_span, scalar::multiply_add_span);

constexpr int64_t kElementsPerTask = 16384;  // about 4 µs from the second-level cache: twice what a team costs to wake
constexpr int64_t kRowsPerChunk = 128;       // of sum_rows; part of the result: it fixes the order of additions

using Span = void (*)(const float*, const float*, float*, int64_t);

void in_parallel(Span span, const float* a, const float* b, float* out, int64_t n) {
  parallel_for(0, n, kElementsPerTask,
               [&](int64_t first, int64_t last) { span(a + first, b + first, out + first, last - first); });
}

}  // namespace

void add(const float* a, const float* b, float* out, int64_t n) {
  in_parallel(&VITRAIL_DISPATCH(add_span), a, b, out, n);
}
void multiply(const float* a, const float* b, float* out, int64_t n) {
  in_parallel(&VITRAIL_DISPATCH(multiply_span), a, b, out, n);
}

void sum_rows(const float* x, const float* y, int64_t rows, int64_t cols, float* out) {
  const Span add_to = &VITRAIL_DISPATCH(add_span);
  const Span multiply_add_to = &VITRAIL_DISPATCH(multiply_add_span);
  const int64_t chunks = (rows + kRowsPerChunk - 1) / kRowsPerChunk;
  std::vector<float> partial(static_cast<size_t>(chunks * cols), 0.0f);
  parallel_for(0, chunks, 1 + kElementsPerTask / (kRowsPerChunk * cols + 1), [&](int64_t first, int64_t last) {
    for (int64_t r = first * kRowsPerChunk; r < std::min(rows, last * kRowsPerChunk); ++r) {
      float* const to = partial.data() + r / kRowsPerChunk * cols;
      if (y) {
        multiply_add_to(x + r * cols, y + r * cols, to, cols);
      } else {
        add_to(to, x + r * cols, to, cols);
      }
    }
  });
  std::fill(out, out + cols, 0.0f);
  for (int64_t chunk = 0; chunk < chunks; ++chunk) add_to(out, partial.data() + chunk * cols, out, cols);
}

}  // namespace vitrail::kernels
#endif
