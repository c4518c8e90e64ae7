// SPDX-License-Identifier: Apache-2.0
// The dot-product microkernels of AVX-512 VNNI (vpdpbusd, vpdpwssd) and BF16 (vdpbf16ps): one instruction multiplies
// and adds a K group.  Written in intrinsics because Highway 1.0 has no such operations.
#include <algorithm>
#include <stdexcept>

#include "vitrail/kernels/gemm/dot_microkernels_internal.h"
#include "vitrail/kernels/gemm/register_tile_internal.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include "hwy/base.h"

// For lambdas, which HWY_PUSH_ATTRIBUTES does not reach.  The compiler emits neither extension's instructions by
// itself, so the VNNI microkernels run on processors without BF16.
#define VITRAIL_DOT_ATTR __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni,avx512bf16")))

HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512vl,avx512vnni,avx512bf16")
namespace vitrail::kernels {
namespace {

// 12 × 2 accumulators, 2 vectors of the panel and 1 of x are 27 of 32 registers.
constexpr size_t kDotTileRows = 12;

struct Int8Dot {
  using V = __m512i;
  HWY_INLINE static V zero() { return _mm512_setzero_si512(); }
  HWY_INLINE static V load(const int32_t* p) { return _mm512_load_si512(p); }
  HWY_INLINE static void store(int32_t* p, V v) { _mm512_store_si512(p, v); }
  HWY_INLINE static V multiply_add(V accumulator, __m512i x, __m512i w) {
    return _mm512_dpbusd_epi32(accumulator, x, w);
  }
};

struct Int16Dot : Int8Dot {
  HWY_INLINE static V multiply_add(V accumulator, __m512i x, __m512i w) {
    return _mm512_dpwssd_epi32(accumulator, x, w);
  }
};

struct Bf16Dot {
  using V = __m512;
  HWY_INLINE static V zero() { return _mm512_setzero_ps(); }
  HWY_INLINE static V load(const int32_t* p) { return _mm512_load_ps(p); }
  HWY_INLINE static void store(int32_t* p, V v) { _mm512_store_ps(p, v); }
  HWY_INLINE static V multiply_add(V accumulator, __m512i x, __m512i w) {
    return _mm512_dpbf16_ps(accumulator, reinterpret_cast<__m512bh>(x), reinterpret_cast<__m512bh>(w));
  }
};

// register_tile of register_tile-inl.h in these instructions.
template <class Arithmetic, bool transposed_x, bool left_half, size_t... row>
HWY_NOINLINE void dot_tile(std::index_sequence<row...>, const DotMicrokernelArgs& args, int64_t first,
                           PrefetchInSteps& prefetch) {
  using V = typename Arithmetic::V;
  const int64_t ldc = args.ld_accumulators;
  int32_t* const c = static_cast<int32_t*>(args.accumulators) + first * ldc;
  auto begin = [&](size_t r, int64_t column) VITRAIL_DOT_ATTR {
    return args.accumulate ? Arithmetic::load(c + static_cast<int64_t>(r) * ldc + column) : Arithmetic::zero();
  };
  // Arrays with constant indices only (a fold over `row`, no loop), so that the compiler keeps them in registers.
  V left[] = {begin(row, 0)...};
  [[maybe_unused]] V right[] = {(left_half ? Arithmetic::zero() : begin(row, 16))...};
  const int64_t row_stride = transposed_x ? 4 : 4 * args.ldx, k_stride = transposed_x ? 4 * args.ldx : 4;  // bytes
  RowPointers<sizeof...(row)> rows(reinterpret_cast<const char*>(args.x) + first * row_stride, row_stride);
  const int32_t* panel = args.panel;
  for (int64_t k = 0; k < args.k_groups;) {
    prefetch.step();
    const int64_t end = std::min(k + kPrefetchDepth, args.k_groups);
    for (; k < end; ++k, panel += kAvx512Columns) {
      const __m512i w0 = _mm512_load_si512(panel), w1 = left_half ? w0 : _mm512_load_si512(panel + 16);
      auto multiply_add_row = [&](size_t r, V& l, V& right_accumulator) VITRAIL_DOT_ATTR {
        const __m512i x = _mm512_set1_epi32(rows.template load<int32_t>(r));
        l = Arithmetic::multiply_add(l, x, w0);
        if constexpr (!left_half) right_accumulator = Arithmetic::multiply_add(right_accumulator, x, w1);
      };
      (multiply_add_row(row, left[row], right[row]), ...);
      rows.advance(k_stride);
    }
  }
  (Arithmetic::store(c + static_cast<int64_t>(row) * ldc, left[row]), ...);
  if constexpr (!left_half) (Arithmetic::store(c + static_cast<int64_t>(row) * ldc + 16, right[row]), ...);
}

template <class Arithmetic, bool transposed_x, bool left_half>
void dot_panel(const DotMicrokernelArgs& args) {
  PrefetchInSteps prefetch(args.next, args.rows, kDotTileRows, args.k_groups);
  for_each_register_tile<kDotTileRows>(args.rows, [&](auto tile_rows, int64_t first) VITRAIL_DOT_ATTR {
    dot_tile<Arithmetic, transposed_x, left_half>(tile_rows, args, first, prefetch);
  });
}

void int8_dot(const DotMicrokernelArgs& args) { dot_panel<Int8Dot, false, false>(args); }

void int16_dot(const DotMicrokernelArgs& args) {
  const bool left_half = 2 * args.columns <= kAvx512Columns;
  left_half ? dot_panel<Int16Dot, false, true>(args) : dot_panel<Int16Dot, false, false>(args);
}

void bf16_dot(const DotMicrokernelArgs& args) {
  const bool left_half = 2 * args.columns <= kAvx512Columns;
  if (args.transposed_x) {
    left_half ? dot_panel<Bf16Dot, true, true>(args) : dot_panel<Bf16Dot, true, false>(args);
  } else {
    left_half ? dot_panel<Bf16Dot, false, true>(args) : dot_panel<Bf16Dot, false, false>(args);
  }
}

}  // namespace

DotMicrokernel vnni_microkernel() { return &int8_dot; }
DotMicrokernel int16_microkernel() { return &int16_dot; }
DotMicrokernel bf16_microkernel() { return &bf16_dot; }

}  // namespace vitrail::kernels
HWY_POP_ATTRIBUTES
#else
namespace vitrail::kernels {

DotMicrokernel vnni_microkernel() { throw std::logic_error("VNNI exists on x86-64 only"); }
DotMicrokernel int16_microkernel() { throw std::logic_error("VNNI exists on x86-64 only"); }
DotMicrokernel bf16_microkernel() { throw std::logic_error("AVX-512 BF16 exists on x86-64 only"); }

}  // namespace vitrail::kernels
#endif
