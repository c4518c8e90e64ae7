// Sums of 8-bit products by AVX-512 VNNI: four products a lane in one instruction, where
// int8_product.cpp takes three.  Plain intrinsics, because Highway 1.0 has no such operation.
#include <stdexcept>
#include <utility>

#include "vitrail/kernels/int8_sums.h"
#include "vitrail/kernels/tile_tasks.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include "hwy/base.h"

// Lambdas do not take over what HWY_PUSH_ATTRIBUTES gives to functions.
#define VITRAIL_VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni")))

HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512vl,avx512vnni")
namespace vitrail::kernels {
namespace {

constexpr int64_t kColumns = 32;  // of a panel: two registers
constexpr int64_t kRows = 12;     // 12 × 2 sums, 2 of the panel and 1 of x are 27 of 32 registers

template <size_t... row>
HWY_NOINLINE void add_tile(std::index_sequence<row...>, const Int8Panel& p, int64_t first) {
  int32_t* const sums = p.sums + first * kMostColumns;
  auto before = [&](size_t r, int64_t c) VITRAIL_VNNI {
    return p.accumulate ? _mm512_load_si512(sums + static_cast<int64_t>(r) * kMostColumns + c) : _mm512_setzero_si512();
  };
  // Arrays with constant indices only (a fold over `row`, no loop), so that the compiler keeps them in registers.
  __m512i left[] = {before(row, 0)...};
  __m512i right[] = {before(row, 16)...};
  const int32_t* const rows[] = {(p.x + (first + static_cast<int64_t>(row)) * p.ldx)...};
  const int32_t* panel = p.panel;
  for (int64_t w = 0; w < p.words; ++w, panel += kColumns) {
    const __m512i b0 = _mm512_load_si512(panel), b1 = _mm512_load_si512(panel + 16);
    auto step = [&](int32_t word, __m512i& l, __m512i& r) VITRAIL_VNNI {
      const __m512i value = _mm512_set1_epi32(word);
      l = _mm512_dpbusd_epi32(l, value, b0);
      r = _mm512_dpbusd_epi32(r, value, b1);
    };
    (step(rows[row][w], left[row], right[row]), ...);
  }
  (_mm512_store_si512(sums + static_cast<int64_t>(row) * kMostColumns, left[row]), ...);
  (_mm512_store_si512(sums + static_cast<int64_t>(row) * kMostColumns + 16, right[row]), ...);
}

// The last rows, fewer than a tile has.
template <size_t... rows>
void add_tile_of_any(std::index_sequence<rows...>, int64_t count, const Int8Panel& p, int64_t first) {
  (void)((count == static_cast<int64_t>(rows + 1) &&
          (add_tile(std::make_index_sequence<rows + 1>(), p, first), true)) ||
         ...);
}

void add_panel(const Int8Panel& p) {
  int64_t r = 0;
  for (; r + kRows <= p.rows; r += kRows) add_tile(std::make_index_sequence<kRows>(), p, r);
  add_tile_of_any(std::make_index_sequence<kRows - 1>(), p.rows - r, p, r);
}

}  // namespace

Int8Sums vnni_sums() { return &add_panel; }

}  // namespace vitrail::kernels
HWY_POP_ATTRIBUTES
#else
namespace vitrail::kernels {

Int8Sums vnni_sums() { throw std::logic_error("VNNI is a part of x86-64"); }

}  // namespace vitrail::kernels
#endif
