// SPDX-License-Identifier: Apache-2.0
// PackedLinear in 8 bits: weights by output channel become whole numbers of at most ±127, activations by row whole
// numbers from 0 to 255 with a zero among them (GELU gives much that is positive and little that is not: ±127 would
// lose half of the steps).  Their products are summed exactly in 32 bits; the two scales, bias, activation and residual
// follow in fp32.
//
// x is quantised first, into the scratch, four numbers to a word of 32 bits.  AVX-512 VNNI multiplies and sums four
// bytes in one instruction (avx512_microkernels.cpp); elsewhere they are multiplied and summed two by two in 16 bits,
// where 255 · w + 255 · v has room while |w + v| ≤ 128.  What has no room there, as models rounded for VNNI have it
// (one in fifty of DeiT-Tiny's pairs), is multiplied in pairs of 16-bit numbers: 75 ms in place of 55 for ViT-B's fc1
// at 8 images on a core of Zen 3; fp32 takes 98.
//
// A row's grid stands before its words; quantized_gemm_internal.h has the rest.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>
#include <vector>

#include "vitrail/kernels/gemm/activation_quantization_internal.h"
#include "vitrail/kernels/gemm/int8_weight.h"
#include "vitrail/kernels/gemm/quantized_gemm_internal.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/gemm/int8_gemm.cpp"
#include "vitrail/kernels/isa/highway-inl.h"
// After highway-inl.h: what is compiled for each target.
#include "vitrail/kernels/gemm/epilogue-inl.h"

#ifndef VITRAIL_KERNELS_INT8_PRODUCT_ONCE
#define VITRAIL_KERNELS_INT8_PRODUCT_ONCE
namespace vitrail::kernels {
namespace {

struct Int8Task {
  QuantizedGemmTask words;
  const int32_t* column_sums;  // of the weight: the sums are too large by a row's zero times these
  const float* column_scales;
};

}  // namespace
}  // namespace vitrail::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {

// 6 × 2 sums, 1 of x, 1 of ones and 1 between the multiplications are 15 of the 16 registers of AVX2; the panel is read
// where it is used.
#if HWY_TARGET == HWY_AVX3
constexpr int64_t kInt8Rows = 12;
#else
constexpr int64_t kInt8Rows = 6;
#endif

int64_t columns_of_int8_panel() { return 2 * static_cast<int64_t>(hn::Lanes(hn::ScalableTag<int32_t>())); }

// sum + the products of four bytes, a's without sign and b's with one.  On x86, unless wide, two of them are summed in
// 16 bits first, into which they must fit.
template <bool wide, class D>
HWY_INLINE hn::Vec<D> add_quad_products(D d, hn::Vec<D> a, hn::Vec<D> b, hn::Vec<D> sum) {
#if HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  if constexpr (wide) {
    const hn::Repartition<int16_t, D> d16;
    const hn::Repartition<uint16_t, D> u16;
    const auto pairs = hn::BitCast(d16, b);
    auto none = hn::Zero(d);
    sum = hn::ReorderWidenMulAccumulate(d, hn::And(hn::BitCast(d16, a), hn::Set(d16, 255)),
                                        hn::ShiftRight<8>(hn::ShiftLeft<8>(pairs)), sum, none);
    return hn::ReorderWidenMulAccumulate(d, hn::BitCast(d16, hn::ShiftRight<8>(hn::BitCast(u16, a))),
                                         hn::ShiftRight<8>(pairs), sum, none);
  }
#endif
#if HWY_TARGET == HWY_SSE4
  return hn::Add(sum, hn::Vec<D>{_mm_madd_epi16(_mm_maddubs_epi16(a.raw, b.raw), _mm_set1_epi16(1))});
#elif HWY_TARGET == HWY_AVX2
  return hn::Add(sum, hn::Vec<D>{_mm256_madd_epi16(_mm256_maddubs_epi16(a.raw, b.raw), _mm256_set1_epi16(1))});
#elif HWY_TARGET == HWY_AVX3
  return hn::Add(sum, hn::Vec<D>{_mm512_madd_epi16(_mm512_maddubs_epi16(a.raw, b.raw), _mm512_set1_epi16(1))});
#else
  const auto low = hn::Set(d, 255);
  sum = hn::Add(sum, hn::Mul(hn::And(a, low), hn::ShiftRight<24>(hn::ShiftLeft<24>(b))));
  sum = hn::Add(sum, hn::Mul(hn::And(hn::ShiftRight<8>(a), low), hn::ShiftRight<24>(hn::ShiftLeft<16>(b))));
  sum = hn::Add(sum, hn::Mul(hn::And(hn::ShiftRight<16>(a), low), hn::ShiftRight<24>(hn::ShiftLeft<8>(b))));
  return hn::Add(sum, hn::Mul(hn::And(hn::ShiftRight<24>(a), low), hn::ShiftRight<24>(b)));
#endif
}

// The nearest whole numbers, even at ties, of what is finite and in their range.
template <class D, class V>
HWY_INLINE hn::Vec<D> to_nearest(D, V v) {
#if HWY_TARGET == HWY_AVX3
  return hn::Vec<D>{_mm512_cvtps_epi32(v.raw)};  // Highway's sees to what is out of range, in four instructions more
#else
  return hn::NearestInt(v);
#endif
}

// to [4 · lanes] = a, b, c, e as bytes, cut to 0 and 255.
template <class D>
HWY_INLINE void store_bytes(D d, hn::Vec<D> a, hn::Vec<D> b, hn::Vec<D> c, hn::Vec<D> e, uint8_t* to) {
#if HWY_TARGET == HWY_AVX3
  const __m512i ab = _mm512_packus_epi32(a.raw, b.raw), ce = _mm512_packus_epi32(c.raw, e.raw);
  const __m512i order = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);  // of quads, by vector
  _mm512_storeu_si512(to, _mm512_permutexvar_epi32(order, _mm512_packus_epi16(ab, ce)));
#else
  const hn::Rebind<uint8_t, D> d8;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::StoreU(hn::DemoteTo(d8, a), d8, to);
  hn::StoreU(hn::DemoteTo(d8, b), d8, to + lanes);
  hn::StoreU(hn::DemoteTo(d8, c), d8, to + 2 * lanes);
  hn::StoreU(hn::DemoteTo(d8, e), d8, to + 3 * lanes);
#endif
}

// x [in] → bytes.  The smallest (or 0) becomes 0 and the largest (or 0) 255.  What is not finite makes the scale NaN,
// and so the whole row.
QuantizationParams quantize_row(const float* x, int64_t in, uint8_t* bytes) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> d32;
  const hn::Rebind<uint8_t, decltype(d)> d8;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto nothing = hn::Zero(d);
  auto least = nothing, most = nothing, poison = nothing;
  auto look = [&](auto v) HWY_ATTR {
    least = hn::Min(least, v);
    most = hn::Max(most, v);
    poison = hn::MulAdd(v, nothing, poison);
  };
  const int64_t whole = in / lanes * lanes;
  for (int64_t c = 0; c < whole; c += lanes) look(hn::LoadU(d, x + c));
  if (whole < in) look(load_first(d, x + whole, in - whole));
  const RowQuantizer steps =
      row_quantizer(hn::GetLane(hn::MinOfLanes(d, least)),
                    hn::GetLane(hn::MaxOfLanes(d, most)) + hn::GetLane(hn::SumOfLanes(d, poison)));
  const auto factor = hn::Set(d, steps.factor);
  const auto zero = hn::Set(d32, steps.grid.zero);
  auto number = [&](auto v) HWY_ATTR { return hn::Add(to_nearest(d32, hn::Mul(v, factor)), zero); };
  int64_t c = 0;
  for (; c + 4 * lanes <= in; c += 4 * lanes) {
    store_bytes(d32, number(hn::LoadU(d, x + c)), number(hn::LoadU(d, x + c + lanes)),
                number(hn::LoadU(d, x + c + 2 * lanes)), number(hn::LoadU(d, x + c + 3 * lanes)), bytes + c);
  }
  for (; c < whole; c += lanes) hn::StoreU(hn::DemoteTo(d8, number(hn::LoadU(d, x + c))), d8, bytes + c);
  if (whole < in) {
    HWY_ALIGN uint8_t last[HWY_MAX_BYTES];
    hn::Store(hn::DemoteTo(d8, number(load_first(d, x + whole, in - whole))), d8, last);
    std::copy_n(last, in - whole, bytes + whole);
  }
  return steps.grid;
}

// What the bytes leave of x [in], as bytes (activation_quantization_internal.h).
QuantizationParams quantize_rest(const float* x, int64_t in, QuantizationParams grid, const uint8_t* bytes,
                                 uint8_t* rest) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> d32;
  const hn::Rebind<uint8_t, decltype(d)> d8;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const LowTermQuantizer steps = low_term_quantizer(grid);
  const auto zero = hn::Set(d32, grid.zero), middle = hn::Set(d32, steps.grid.zero);
  const auto factor = hn::Set(d, steps.factor), steps_of_one = hn::Set(d, LowTermQuantizer::kOfOne);
  int64_t i = 0;
  for (; i + lanes <= in; i += lanes) {
    const auto number = hn::ConvertTo(d, hn::Sub(hn::PromoteTo(d32, hn::LoadU(d8, bytes + i)), zero));
    const auto left = hn::Sub(hn::Mul(hn::LoadU(d, x + i), factor), number);
    const auto finer = hn::Add(to_nearest(d32, hn::Mul(left, steps_of_one)), middle);
    hn::StoreU(hn::DemoteTo(d8, finer), d8, rest + i);
  }
  for (; i < in; ++i) rest[i] = low_term_value(x[i], bytes[i], steps);
  return steps.grid;
}

template <bool accumulate, bool wide, size_t... row>
HWY_NOINLINE void int8_tile(std::index_sequence<row...>, const int32_t* x, int64_t ldx, const int32_t* panel,
                            int64_t words, int32_t* sums, int64_t ld_sums) {
  const hn::ScalableTag<int32_t> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto before = [&](size_t r, int64_t c) HWY_ATTR {
    return accumulate ? hn::Load(d, sums + static_cast<int64_t>(r) * ld_sums + c) : hn::Zero(d);
  };
  // Arrays with constant indices only (a fold over `row`, no loop), so that the compiler keeps them in registers.
  V left[] = {before(row, 0)...};
  V right[] = {before(row, lanes)...};
  const int32_t* const rows[] = {(x + static_cast<int64_t>(row) * ldx)...};
  for (int64_t p = 0; p < words; ++p, panel += 2 * lanes) {
    const V b0 = hn::Load(d, panel), b1 = hn::Load(d, panel + lanes);
    auto step = [&](V value, V& l, V& r) HWY_ATTR {
      l = add_quad_products<wide>(d, value, b0, l);
      r = add_quad_products<wide>(d, value, b1, r);
    };
    (step(hn::Set(d, rows[row][p]), left[row], right[row]), ...);
  }
  (hn::Store(left[row], d, sums + static_cast<int64_t>(row) * ld_sums), ...);
  (hn::Store(right[row], d, sums + static_cast<int64_t>(row) * ld_sums + lanes), ...);
}

// The last rows, fewer than a tile has.
template <bool accumulate, bool wide, size_t... rows>
HWY_INLINE void int8_tile_of_any(std::index_sequence<rows...>, int64_t count, const int32_t* x, int64_t ldx,
                                 const int32_t* panel, int64_t words, int32_t* sums, int64_t ld_sums) {
  (void)((count == static_cast<int64_t>(rows + 1) &&
          (int8_tile<accumulate, wide>(std::make_index_sequence<rows + 1>(), x, ldx, panel, words, sums, ld_sums),
           true)) ||
         ...);
}

template <bool accumulate, bool wide>
HWY_INLINE void add_tiles(const PackedPanel& p) {
  auto* const sums = static_cast<int32_t*>(p.sums);
  int64_t r = 0;
  for (; r + kInt8Rows <= p.rows; r += kInt8Rows) {
    int8_tile<accumulate, wide>(std::make_index_sequence<kInt8Rows>(), p.x + r * p.ldx, p.ldx, p.panel, p.words,
                                sums + r * p.ld_sums, p.ld_sums);
  }
  int8_tile_of_any<accumulate, wide>(std::make_index_sequence<kInt8Rows - 1>(), p.rows - r, p.x + r * p.ldx, p.ldx,
                                     p.panel, p.words, sums + r * p.ld_sums, p.ld_sums);
}

void add_int8_panel(const PackedPanel& p) { p.accumulate ? add_tiles<true, false>(p) : add_tiles<false, false>(p); }
void add_wide_int8_panel(const PackedPanel& p) { p.accumulate ? add_tiles<true, true>(p) : add_tiles<false, true>(p); }

// The scaled sums of a vector of columns from c on, and what is to be added to them.
template <class D, class V>
HWY_INLINE V scaled_sums(D d, const Int8Task& task, QuantizationParams grid, const int32_t* sums, int64_t c, V addend) {
  const hn::RebindToSigned<D> d32;
  const auto scale = hn::Mul(hn::Set(d, grid.scale), hn::Load(d, task.column_scales + c));
  const auto excess = hn::Mul(hn::Set(d32, grid.zero), hn::Load(d32, task.column_sums + c));
  return hn::MulAdd(hn::ConvertTo(d, hn::Sub(hn::Load(d32, sums + c), excess)), scale, addend);
}

template <Activation kind>
HWY_INLINE void finish_int8_rows(const Int8Task& task, const int32_t* sums) {
  const TaskOutput& to = task.words.to;
  const int32_t *x = task.words.x, *rest = x + to.rows * task.words.ldx, *rest_sums = sums + to.rows * kMaxColumns;
  int64_t fine = task.words.two_term.stride > 0 ? task.words.two_term.first : -1;
  RowBiasIterator biases(task.words.row_bias, task.words.first_row);
  for (int64_t r = 0; r < to.rows; ++r, x += task.words.ldx, sums += kMaxColumns) {
    const Residual& add = to.epilogue.residual;
    const float* const residual = add.data ? add.data + r * add.ld : nullptr;
    const QuantizationParams grid = row_metadata_before<QuantizationParams>(x);
    const float* const bias = task.words.row_bias.data ? biases.next() : task.words.bias;
    const auto with_bias = [&](auto d, int64_t c)
                               HWY_ATTR { return scaled_sums(d, task, grid, sums, c, hn::Load(d, bias + c)); };
    float* const y = to.y.data + r * to.y.ld;
    if (r != fine) {
      finish_row<kind, true>(with_bias, 0, to.columns, add.scale, residual, y);
      continue;
    }
    const QuantizationParams rest_grid = row_metadata_before<QuantizationParams>(rest);
    const auto whole = [&](auto d, int64_t c)
                           HWY_ATTR { return scaled_sums(d, task, rest_grid, rest_sums, c, with_bias(d, c)); };
    finish_row<kind>(whole, 0, to.columns, add.scale, residual, y);
    fine += task.words.two_term.stride;
    rest += task.words.ldx;
    rest_sums += kMaxColumns;
  }
}

void run_int8_task(const Int8Task& task) {
  HWY_ALIGN int32_t sums[kMaxRows * kMaxColumns];
  accumulate_task(task.words, sums);
  const int32_t* const done = sums;
  with_activation(task.words.to.epilogue.activation,
                  [&task, done](auto kind) HWY_ATTR { finish_int8_rows<kind()>(task, done); });
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "vitrail/base/parallel.h"

namespace vitrail::kernels {
namespace {

VITRAIL_EXPORT(columns_of_int8_panel, nullptr);
VITRAIL_EXPORT(quantize_row, nullptr);
VITRAIL_EXPORT(quantize_rest, nullptr);
VITRAIL_EXPORT(add_int8_panel, nullptr);
VITRAIL_EXPORT(add_wide_int8_panel, nullptr);
VITRAIL_EXPORT(run_int8_task, nullptr);

class Int8Gemm : public QuantizedGemm {
 public:
  Int8Gemm(const Int8Rows& weight, const float* bias, int64_t out, int64_t in, DotMicrokernel sums)
      : QuantizedGemm(bias, out, in,
                      {.numbers = 4,
                       .width = VITRAIL_DISPATCH(columns_of_int8_panel)(),
                       .heading = kRowMetadataGroups<QuantizationParams>,
                       .two_term_rows = true}),
        add_panel_(sums),
        quantize_(&VITRAIL_DISPATCH(quantize_row)),
        quantize_rest_(&VITRAIL_DISPATCH(quantize_rest)),
        run_task_(&VITRAIL_DISPATCH(run_int8_task)),
        column_sums_(zero_weights<int32_t>(columns())),
        scales_(zero_weights<float>(columns())) {
    std::atomic<bool> wide = false;
    parallel_for(0, out, 1 + 65536 / (in + 1), [&](int64_t first, int64_t last) {
      std::vector<int8_t> numbers(static_cast<size_t>(4 * words()));
      for (int64_t c = first; c < last; ++c) {
        scales_[c] = weight.take(c, in, &quantize_weight_row, numbers.data());
        pack(numbers, c);
        if (!is_narrow(numbers)) wide = true;
      }
    });
    if (wide && sums == int8_microkernel()) add_panel_ = wide_int8_microkernel();
  }

  size_t packed_bytes() const override { return static_cast<size_t>(columns() * (words() + 3)) * 4; }
  bool takes_correction() const override { return true; }

 private:
  static bool is_narrow(const std::vector<int8_t>& numbers) {
    for (size_t i = 0; i + 1 < numbers.size(); i += 2) {
      if (std::abs(numbers[i] + numbers[i + 1]) > kMaxSaturatingPair) return false;
    }
    return true;
  }

  // Column c of the weight, into every word of its panel's column.
  void pack(const std::vector<int8_t>& numbers, int64_t c) {
    int32_t* const column = panel(c / width()) + c % width();
    for (int64_t w = 0; w < words(); ++w) std::memcpy(column + w * width(), numbers.data() + 4 * w, sizeof(int32_t));
    column_sums_[c] = std::accumulate(numbers.begin(), numbers.end(), 0);
  }

  void write_row(const float* x, int32_t* words, int32_t* rest) const override {
    auto* const bytes = reinterpret_cast<uint8_t*>(words);
    const QuantizationParams grid = quantize_(x, in(), bytes);
    put_row_metadata_before(words, grid);
    if (rest) put_row_metadata_before(rest, quantize_rest_(x, in(), grid, bytes, reinterpret_cast<uint8_t*>(rest)));
  }
  void run_task(const QuantizedGemmTask& task, int64_t column) const override {
    run_task_({task, column_sums_.get() + column, scales_.get() + column});
  }
  DotMicrokernel sums() const override { return add_panel_; }

  DotMicrokernel add_panel_;
  QuantizationParams (*quantize_)(const float*, int64_t, uint8_t*);
  QuantizationParams (*quantize_rest_)(const float*, int64_t, QuantizationParams, const uint8_t*, uint8_t*);
  void (*run_task_)(const Int8Task&);
  AlignedArray<int32_t> column_sums_;
  AlignedArray<float> scales_;
};

}  // namespace

std::unique_ptr<PackedGemm> make_int8_gemm(const Int8Rows& weight, const float* bias, int64_t out, int64_t in,
                                           DotMicrokernel sums) {
  return std::make_unique<Int8Gemm>(weight, bias, out, in, sums);
}
DotMicrokernel int8_microkernel() { return &VITRAIL_DISPATCH(add_int8_panel); }
DotMicrokernel wide_int8_microkernel() { return &VITRAIL_DISPATCH(add_wide_int8_panel); }

}  // namespace vitrail::kernels
#endif
