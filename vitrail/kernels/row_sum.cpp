#include "vitrail/kernels/row_sum.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/row_sum.cpp"
#include "vitrail/kernels/highway-inl.h"
// After highway-inl.h: what is compiled for each target.
#include "vitrail/kernels/vector_memory-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {

void add_up_rows(const float* x, int64_t ldx, int64_t rows, int64_t cols, float factor, float* to) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto part = hn::Set(d, factor);
  int64_t c = 0;
  for (; c + 4 * lanes <= cols; c += 4 * lanes) {
    auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    for (int64_t r = 0; r < rows; ++r) {
      const float* const row = x + r * ldx + c;
      s0 = hn::Add(s0, hn::LoadU(d, row));
      s1 = hn::Add(s1, hn::LoadU(d, row + lanes));
      s2 = hn::Add(s2, hn::LoadU(d, row + 2 * lanes));
      s3 = hn::Add(s3, hn::LoadU(d, row + 3 * lanes));
    }
    hn::StoreU(hn::Mul(s0, part), d, to + c);
    hn::StoreU(hn::Mul(s1, part), d, to + c + lanes);
    hn::StoreU(hn::Mul(s2, part), d, to + c + 2 * lanes);
    hn::StoreU(hn::Mul(s3, part), d, to + c + 3 * lanes);
  }
  for (; c < cols; c += lanes) {
    const int64_t left = std::min(lanes, cols - c);
    auto sum = hn::Zero(d);
    for (int64_t r = 0; r < rows; ++r) {
      const float* const row = x + r * ldx + c;
      sum = hn::Add(sum, left == lanes ? hn::LoadU(d, row) : load_first(d, row, left));
    }
    sum = hn::Mul(sum, part);
    left == lanes ? hn::StoreU(sum, d, to + c) : store_first(d, sum, to + c, left);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "vitrail/kernels/isa.h"

namespace vitrail::kernels {
namespace {

VITRAIL_EXPORT(add_up_rows);

}  // namespace

void sum_of_rows(const float* x, int64_t ldx, int64_t rows, int64_t cols, float factor, float* to) {
  if (active_isa() != Isa::scalar) return VITRAIL_DISPATCH(add_up_rows)(x, ldx, rows, cols, factor, to);
  for (int64_t c = 0; c < cols; ++c) {
    float sum = 0;
    for (int64_t r = 0; r < rows; ++r) sum += x[r * ldx + c];
    to[c] = sum * factor;
  }
}

}  // namespace vitrail::kernels
#endif
