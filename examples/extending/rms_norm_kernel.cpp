// SPDX-License-Identifier: Apache-2.0
#include "examples/extending/rms_norm_kernel.h"

// Highway includes this file again for each target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "examples/extending/rms_norm_kernel.cpp"
#include "vitrail/kernels/isa/highway-inl.h"
// After highway-inl.h: these headers are compiled for each target, too.
#include "vitrail/kernels/isa/vector_memory-inl.h"
#include "vitrail/kernels/rowwise/row_reduction-inl.h"

HWY_BEFORE_NAMESPACE();
namespace extending {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using vitrail::kernels::HWY_NAMESPACE::load_first;
using vitrail::kernels::HWY_NAMESPACE::store_first;
using vitrail::kernels::HWY_NAMESPACE::sum_row;

void rms_norm_row(const float* x, const float* gamma, float eps, float* y, int64_t cols) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const float squares = sum_row(d, x, cols, [](auto v) HWY_ATTR { return hn::Mul(v, v); });
  const auto inverse = hn::Set(d, 1.0f / std::sqrt(squares / static_cast<float>(cols) + eps));
  const auto one = hn::Set(d, 1.0f);
  int64_t c = 0;
  for (; c + lanes <= cols; c += lanes) {
    const auto g = gamma ? hn::LoadU(d, gamma + c) : one;
    hn::StoreU(hn::Mul(hn::Mul(hn::LoadU(d, x + c), inverse), g), d, y + c);
  }
  if (const int64_t left = cols - c; left > 0) {
    const auto g = gamma ? load_first(d, gamma + c, left) : one;
    store_first(d, hn::Mul(hn::Mul(load_first(d, x + c, left), inverse), g), y + c, left);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace extending
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "vitrail/base/parallel.h"

namespace extending {
namespace {

VITRAIL_EXPORT(rms_norm_row, scalar::rms_norm_row);  // the table: one version for each vitrail::kernels::Target

}  // namespace

void rms_norm_rows(const float* x, const float* gamma, float eps, float* y, int64_t rows, int64_t cols) {
  auto* const norm_row = &VITRAIL_DISPATCH(rms_norm_row);
  const int64_t rows_per_task = 1 + 8192 / (cols + 1);  // smaller tasks cost more to start than to run
  vitrail::parallel_for(0, rows, rows_per_task, [&](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r) norm_row(x + r * cols, gamma, eps, y + r * cols, cols);
  });
}

}  // namespace extending
#endif
