// SPDX-License-Identifier: Apache-2.0
// Packs one head's queries, keys and values as bf16 in 32-bit K groups of two values (dot_microkernels_internal.h), in
// panels of kAvx512Columns.  Shared by attention in bf16 and its gradients.
// Included once for each target (no #pragma once: Highway toggles the guard).
#include <algorithm>
#include <cstdint>

#include "hwy/highway.h"
#include "vitrail/base/round_up_internal.h"
#include "vitrail/kernels/gemm/dot_microkernels_internal.h"
#include "vitrail/kernels/gemm/fp32_microkernel-inl.h"
#include "vitrail/kernels/isa/vector_memory-inl.h"
#include "vitrail/kernels/rowwise/bf16-inl.h"
#include "vitrail/kernels/rowwise/softmax-inl.h"

#if defined(VITRAIL_KERNELS_HEAD_PACKING_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef VITRAIL_KERNELS_HEAD_PACKING_INL_H_
#undef VITRAIL_KERNELS_HEAD_PACKING_INL_H_
#else
#define VITRAIL_KERNELS_HEAD_PACKING_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {

// x [n] → groups of two bf16 values.  If n is odd, the last group ends with a zero.
HWY_INLINE void round_to_groups(const float* x, int64_t n, int32_t* groups) {
  if (n % 2 != 0) groups[n / 2] = 0;
  round_to_bf16_row(x, reinterpret_cast<BFloat16*>(groups), n);
}

HWY_INLINE void round_to_groups(const BFloat16* x, int64_t n, int32_t* groups) {
  if (n % 2 != 0) groups[n / 2] = 0;
  std::copy_n(x, n, reinterpret_cast<BFloat16*>(groups));
}

// Loads min(left, lanes) values as fp32, and zeros into the other lanes.
template <class D>
HWY_INLINE hn::Vec<D> load_wide(D d, const float* p, int64_t left) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  return left >= lanes ? hn::LoadU(d, p) : left > 0 ? load_first(d, p, left) : hn::Zero(d);
}
template <class D>
HWY_INLINE hn::Vec<D> load_wide(D d, const BFloat16* p, int64_t left) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const hn::RebindToUnsigned<D> bits_d;
  const hn::Rebind<uint16_t, D> half_d;
  const auto* const from = reinterpret_cast<const uint16_t*>(p);
  auto widened = [&](const uint16_t* at) HWY_ATTR {
    return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(bits_d, hn::LoadU(half_d, at))));
  };
  if (left >= lanes) return widened(from);
  HWY_ALIGN uint16_t first[HWY_MAX_BYTES / sizeof(float)] = {};
  std::copy_n(from, std::max<int64_t>(left, 0), first);
  return widened(first);
}

// to = factor · x [n].  scale_wide reads an input into fp32; scale_out writes a result and may overwrite x.
HWY_INLINE void scale_wide(const float* x, float factor, float* to, int64_t n) { scale_row(x, factor, to, n); }
HWY_INLINE void scale_wide(const BFloat16* x, float factor, float* to, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto f = hn::Set(d, factor);
  for (int64_t c = 0; c < n; c += lanes) {
    const auto scaled = hn::Mul(f, load_wide(d, x + c, n - c));
    n - c >= lanes ? hn::StoreU(scaled, d, to + c) : store_first(d, scaled, to + c, n - c);
  }
}
HWY_INLINE void scale_out(float* x, float factor, float* to, int64_t n) { scale_row(x, factor, to, n); }
HWY_INLINE void scale_out(float* x, float factor, BFloat16* to, int64_t n) {
  scale_row(x, factor, x, n);
  round_to_bf16_row(x, to, n);
}

// Groups with `low` in the lower and `high` in the upper half.
template <class D>
HWY_INLINE hn::Vec<hn::RebindToSigned<D>> pair_groups(D /*d*/, hn::Vec<D> low, hn::Vec<D> high) {
  const hn::RebindToUnsigned<D> bits_d;
  const auto lower = hn::ShiftRight<16>(round_upper_half(bits_d, hn::BitCast(bits_d, low)));
  const auto upper = hn::And(round_upper_half(bits_d, hn::BitCast(bits_d, high)), hn::Set(bits_d, 0xffff0000u));
  return hn::BitCast(hn::RebindToSigned<D>(), hn::Or(lower, upper));
}

// Rows [rows, columns] as panels [panel][groups][kAvx512Columns], zeros beyond the last row and column.  groups: at
// least the pairs of rows.
template <class T>
HWY_INLINE void pack_groups_along(const T* from, int64_t stride, int64_t rows, int64_t columns, int64_t groups,
                                  int32_t* to) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> groups_d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto part = [&](int64_t row, int64_t column) HWY_ATTR {
    return row < rows ? load_wide(d, from + row * stride + column, columns - column) : hn::Zero(d);
  };
  for (int64_t c = 0; c < round_up(columns, kAvx512Columns); c += lanes) {
    int32_t* const panel = to + c / kAvx512Columns * kAvx512Columns * groups + c % kAvx512Columns;
    for (int64_t g = 0; g < groups; ++g) {
      hn::Store(pair_groups(d, part(2 * g, c), part(2 * g + 1, c)), groups_d, panel + g * kAvx512Columns);
    }
  }
}

// The transpose of rows [rows, columns] as panels [panel][pairs of columns][kAvx512Columns]: each group holds two
// neighbours of a row, as round(row, groups) writes them, and zeros after the last.  `rounded` has room for the groups
// of kAvx512Columns rows.
template <class T, class Round>
HWY_INLINE void pack_rounded_across(const T* from, int64_t stride, int64_t rows, int64_t columns, const Round& round,
                                    int32_t* rounded, int32_t* to) {
  const int64_t groups = (columns + 1) / 2;
  for (int64_t s = 0; s < rows; s += kAvx512Columns) {
    const int64_t count = std::min(kAvx512Columns, rows - s);
    for (int64_t r = 0; r < count; ++r) round(from + (s + r) * stride, rounded + r * groups);
    pack_groups_transposed(rounded, groups, count, groups, to + s * groups);
  }
}

// Packs factor · rows as bf16.  `packing` has packing_floats(columns).
template <class T>
HWY_INLINE void pack_groups_across(const T* from, int64_t stride, int64_t rows, int64_t columns, float factor,
                                   float* packing, int32_t* to) {
  const auto round = [&](const T* row, int32_t* groups) HWY_ATTR {
    scale_wide(row, factor, packing, columns);
    round_to_groups(packing, columns, groups);
  };
  pack_rounded_across(from, stride, rows, columns, round, reinterpret_cast<int32_t*>(packing + columns), to);
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();
#endif
