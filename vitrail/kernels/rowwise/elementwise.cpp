// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/rowwise/elementwise.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/rowwise/elementwise.cpp"
#include "vitrail/base/round_up_internal.h"
#include "vitrail/kernels/isa/highway-inl.h"
// After highway-inl.h: what is compiled for each target.
#include "vitrail/kernels/isa/vector_memory-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {

void add_span(const float* a, const float* b, float* out, int64_t n) {
  for_each_vector(hn::ScalableTag<float>(), n, [=](int64_t i, auto memory) HWY_ATTR {
    memory.store(hn::Add(memory.load(a + i), memory.load(b + i)), out + i);
  });
}

void multiply_span(const float* a, const float* b, float* out, int64_t n) {
  for_each_vector(hn::ScalableTag<float>(), n, [=](int64_t i, auto memory) HWY_ATTR {
    memory.store(hn::Mul(memory.load(a + i), memory.load(b + i)), out + i);
  });
}

// out += a · b
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

constexpr int64_t kElementsPerTask = 16384;  // from L2 these take twice as long as starting the other threads
constexpr int64_t kRowsPerChunk = 128;       // sum_rows(): fixes the order of the additions, so the result too

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
  const Span add_to = &VITRAIL_DISPATCH(add_span), multiply_add_to = &VITRAIL_DISPATCH(multiply_add_span);
  const int64_t chunks = ceil_div(rows, kRowsPerChunk);
  std::vector<float> partial(static_cast<size_t>(chunks * cols), 0.0f);
  parallel_for(0, chunks, 1 + kElementsPerTask / (kRowsPerChunk * cols + 1), [&](int64_t first, int64_t last) {
    for (int64_t r = first * kRowsPerChunk; r < std::min(rows, last * kRowsPerChunk); ++r) {
      float* const sum = partial.data() + r / kRowsPerChunk * cols;
      if (y) {
        multiply_add_to(x + r * cols, y + r * cols, sum, cols);
      } else {
        add_to(sum, x + r * cols, sum, cols);
      }
    }
  });
  std::fill(out, out + cols, 0.0f);
  for (int64_t chunk = 0; chunk < chunks; ++chunk) add_to(out, partial.data() + chunk * cols, out, cols);
}

}  // namespace vitrail::kernels
#endif
