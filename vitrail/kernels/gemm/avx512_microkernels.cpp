// SPDX-License-Identifier: Apache-2.0
// Sums of products in 8 and 16 bits by AVX-512's VNNI and BF16: all products of a word in one instruction, where
// int8_gemm.cpp takes three for bytes.  Plain intrinsics, because Highway 1.0 has no such operations.
#include <stdexcept>
#include <utility>

#include "vitrail/kernels/gemm/dot_microkernels_internal.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include "hwy/base.h"

// Lambdas do not take over what HWY_PUSH_ATTRIBUTES gives to functions.  The compiler uses neither extension of its own
// accord, so that what is for VNNI alone runs without BF16.
#define VITRAIL_WORD_SUMS __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni,avx512bf16")))

HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512vl,avx512vnni,avx512bf16")
namespace vitrail::kernels {
namespace {

constexpr int64_t kRows = 12;  // 12 × 2 sums, 2 of the panel and 1 of x are 27 of 32 registers; at most 4 × 3

struct Bytes {
  using Sums = __m512i;
  HWY_INLINE static Sums zero() { return _mm512_setzero_si512(); }
  HWY_INLINE static Sums load(const int32_t* p) { return _mm512_load_si512(p); }
  HWY_INLINE static void store(int32_t* p, Sums sums) { _mm512_store_si512(p, sums); }
  HWY_INLINE static Sums add(Sums sums, __m512i x, __m512i w) { return _mm512_dpbusd_epi32(sums, x, w); }
};

struct Int16Pairs : Bytes {
  HWY_INLINE static Sums add(Sums sums, __m512i x, __m512i w) { return _mm512_dpwssd_epi32(sums, x, w); }
};

struct Bf16Pairs {
  using Sums = __m512;
  HWY_INLINE static Sums zero() { return _mm512_setzero_ps(); }
  HWY_INLINE static Sums load(const int32_t* p) { return _mm512_load_ps(p); }
  HWY_INLINE static void store(int32_t* p, Sums sums) { _mm512_store_ps(p, sums); }
  HWY_INLINE static Sums add(Sums sums, __m512i x, __m512i w) {
    return _mm512_dpbf16_ps(sums, reinterpret_cast<__m512bh>(x), reinterpret_cast<__m512bh>(w));
  }
};

template <class Words, bool transposed, bool left_half, size_t... row>
HWY_NOINLINE void add_tile(std::index_sequence<row...>, const PackedPanel& p, int64_t first) {
  using Sums = typename Words::Sums;
  int32_t* const sums = static_cast<int32_t*>(p.sums) + first * p.ld_sums;
  auto before = [&](size_t r, int64_t c) VITRAIL_WORD_SUMS {
    return p.accumulate ? Words::load(sums + static_cast<int64_t>(r) * p.ld_sums + c) : Words::zero();
  };
  // Arrays with constant indices only (a fold over `row`, no loop), so that the compiler keeps them in registers.
  Sums left[] = {before(row, 0)...};
  [[maybe_unused]] Sums right[] = {(left_half ? Words::zero() : before(row, 16))...};
  // A pointer for each third row, in variables of their own: all stay in general registers.
  const int64_t ld = transposed ? 4 : 4 * p.ldx, step = transposed ? 4 * p.ldx : 4;  // bytes to the next row, word
  const auto* x0 = reinterpret_cast<const char*>(p.x) + first * ld;
  const char *x1 = x0 + 3 * ld, *x2 = x0 + 6 * ld, *x3 = x0 + 9 * ld;
  const int32_t *panel = p.panel, *const end = panel + p.words * kAvx512Columns;
  for (; panel < end; panel += kAvx512Columns) {
    const __m512i w0 = _mm512_load_si512(panel), w1 = left_half ? w0 : _mm512_load_si512(panel + 16);
    auto add = [&](size_t r, Sums& l, Sums& right_sums) VITRAIL_WORD_SUMS {
      const char* const group = r < 3 ? x0 : r < 6 ? x1 : r < 9 ? x2 : x3;
      const __m512i x = _mm512_set1_epi32(*reinterpret_cast<const int32_t*>(group + static_cast<int64_t>(r % 3) * ld));
      l = Words::add(l, x, w0);
      if constexpr (!left_half) right_sums = Words::add(right_sums, x, w1);
    };
    (add(row, left[row], right[row]), ...);
    x0 += step;
    x1 += step;
    x2 += step;
    x3 += step;
    asm("" : "+r"(x0), "+r"(x1), "+r"(x2), "+r"(x3));  // else the compiler makes a pointer of each row, and spills them
  }
  (Words::store(sums + static_cast<int64_t>(row) * p.ld_sums, left[row]), ...);
  if constexpr (!left_half) {
    (Words::store(sums + static_cast<int64_t>(row) * p.ld_sums + 16, right[row]), ...);
  }
}

// The last rows, fewer than a tile has.
template <class Words, bool transposed, bool left_half, size_t... rows>
void add_tile_of_any(std::index_sequence<rows...>, int64_t count, const PackedPanel& p, int64_t first) {
  (void)((count == static_cast<int64_t>(rows + 1) &&
          (add_tile<Words, transposed, left_half>(std::make_index_sequence<rows + 1>(), p, first), true)) ||
         ...);
}

template <class Words, bool transposed, bool left_half>
void add_tiles(const PackedPanel& p) {
  int64_t r = 0;
  for (; r + kRows <= p.rows; r += kRows) {
    add_tile<Words, transposed, left_half>(std::make_index_sequence<kRows>(), p, r);
  }
  add_tile_of_any<Words, transposed, left_half>(std::make_index_sequence<kRows - 1>(), p.rows - r, p, r);
}

void add_bytes(const PackedPanel& p) { add_tiles<Bytes, false, false>(p); }
void add_int16_pairs(const PackedPanel& p) {
  2 * p.columns <= kAvx512Columns ? add_tiles<Int16Pairs, false, true>(p) : add_tiles<Int16Pairs, false, false>(p);
}

void add_bf16_pairs(const PackedPanel& p) {
  const bool left_half = 2 * p.columns <= kAvx512Columns;
  if (p.transposed_x) {
    left_half ? add_tiles<Bf16Pairs, true, true>(p) : add_tiles<Bf16Pairs, true, false>(p);
  } else {
    left_half ? add_tiles<Bf16Pairs, false, true>(p) : add_tiles<Bf16Pairs, false, false>(p);
  }
}

}  // namespace

DotMicrokernel vnni_microkernel() { return &add_bytes; }
DotMicrokernel int16_microkernel() { return &add_int16_pairs; }
DotMicrokernel bf16_microkernel() { return &add_bf16_pairs; }

}  // namespace vitrail::kernels
HWY_POP_ATTRIBUTES
#else
namespace vitrail::kernels {

DotMicrokernel vnni_microkernel() { throw std::logic_error("VNNI is a part of x86-64"); }
DotMicrokernel int16_microkernel() { throw std::logic_error("VNNI is a part of x86-64"); }
DotMicrokernel bf16_microkernel() { throw std::logic_error("AVX-512 BF16 is a part of x86-64"); }

}  // namespace vitrail::kernels
#endif
