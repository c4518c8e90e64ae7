// PackedLinear in bf16 by AVX-512 BF16 (word_product.h): two numbers to a word of 32 bits.  Products are summed in fp32
// (Highway 1.0 has no such product: avx512_sums.cpp), and bias, activation and residual follow while a task's sums are
// in the cache.
#include "vitrail/kernels/word_product.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/bf16_product.cpp"
#include "vitrail/kernels/highway-inl.h"
// After highway-inl.h: what is compiled for each target.
#include "vitrail/kernels/bf16-inl.h"
#include "vitrail/kernels/epilogue-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {

void round_row_to_words(const float* x, BFloat16* words, int64_t in) { round_row(x, words, in); }

// rest = x less its words, rounded in its turn.
void round_rest(const float* x, const BFloat16* words, int64_t in, BFloat16* rest) {
  const hn::ScalableTag<float> d;
  const hn::RebindToUnsigned<decltype(d)> d32;
  const hn::RebindToSigned<decltype(d)> signed_d;
  const hn::Rebind<uint16_t, decltype(d)> d16;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= in; i += lanes) {
    const auto rounded = hn::PromoteTo(d32, hn::LoadU(d16, reinterpret_cast<const uint16_t*>(words) + i));
    const auto left = hn::Sub(hn::LoadU(d, x + i), hn::BitCast(d, hn::ShiftLeft<16>(rounded)));
    const auto bits = hn::ShiftRight<16>(round_upper_half(d32, hn::BitCast(d32, left)));
    hn::StoreU(hn::DemoteTo(d16, hn::BitCast(signed_d, bits)), d16, reinterpret_cast<uint16_t*>(rest) + i);
  }
  for (; i < in; ++i) rest[i] = BFloat16(x[i] - static_cast<float>(words[i]));
}

// The sums of what a fine row's words leave of it belong to the row's.
HWY_INLINE void add_rests(const WordTask& task, float* sums) {
  const float* rest = sums + task.to.rows * kMostColumns;
  const hn::ScalableTag<float> d;
  for (int64_t r = task.fine.first; r < task.to.rows; r += task.fine.every) {
    float* const row = sums + r * kMostColumns;
    for (int64_t c = 0; c < task.to.columns; c += static_cast<int64_t>(hn::Lanes(d))) {
      hn::Store(hn::Add(hn::Load(d, row + c), hn::Load(d, rest + c)), d, row + c);
    }
    rest += kMostColumns;
  }
}

template <Activation kind>
HWY_INLINE void finish_bf16_rows(const WordTask& task, const float* sums) {
  for (int64_t r = 0; r < task.to.rows; ++r, sums += kMostColumns) {
    const float* const residual = task.to.residual.data ? task.to.residual.data + r * task.to.residual.ld : nullptr;
    const auto sum = [&](auto d, int64_t c)
                         HWY_ATTR { return hn::Add(hn::Load(d, sums + c), hn::Load(d, task.bias + c)); };
    finish_row<kind, true>(sum, 0, task.to.columns, task.to.residual.scale, residual, task.to.y + r * task.to.ldy);
  }
}

void run_bf16_task(const WordTask& task) {
  HWY_ALIGN float sums[kMostRows * kMostColumns];
  sum_words(task, sums);
  if (task.fine.every > 0) add_rests(task, sums);
  const float* const done = sums;
  with_activation(task.to.activation, [&task, done](auto kind) HWY_ATTR { finish_bf16_rows<kind()>(task, done); });
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "vitrail/base/parallel.h"

namespace vitrail::kernels {
namespace {

VITRAIL_EXPORT(round_row_to_words);
VITRAIL_EXPORT(round_rest);
VITRAIL_EXPORT(run_bf16_task);

class Bf16TileProduct : public WordProduct {
 public:
  Bf16TileProduct(const float* weight, const float* bias, int64_t out, int64_t in)
      : WordProduct(bias, out, in, 2, kAvx512Columns, 0),
        add_panel_(bf16_sums()),
        round_(&VITRAIL_DISPATCH(round_row_to_words)),
        round_rest_(&VITRAIL_DISPATCH(round_rest)),
        run_task_(&VITRAIL_DISPATCH(run_bf16_task)) {
    parallel_for(0, panels(), 1 + 65536 / (width() * in + 1), [&](int64_t first, int64_t last) {
      for (int64_t p = first; p < last; ++p) pack_panel(weight, p);
    });
  }

  size_t packed_bytes() const override { return static_cast<size_t>(columns() * (words() + 1)) * 4; }

 private:
  void pack_panel(const float* weight, int64_t p) {
    auto* to = reinterpret_cast<BFloat16*>(panel(p));
    for (int64_t i = 0; i < 2 * words(); i += 2) {
      for (int64_t c = p * width(); c < (p + 1) * width(); ++c) {
        for (int64_t half = i; half < i + 2; ++half) {
          *to++ = c < out() && half < in() ? BFloat16(weight[c * in() + half]) : BFloat16();
        }
      }
    }
  }

  void write_row(const float* x, int32_t* words, int32_t* rest) const override {
    auto* const rounded = reinterpret_cast<BFloat16*>(words);
    round_(x, rounded, in());
    if (rest) round_rest_(x, rounded, in(), reinterpret_cast<BFloat16*>(rest));
  }
  void run_task(const WordTask& task, int64_t) const override { run_task_(task); }
  WordSums sums() const override { return add_panel_; }

  WordSums add_panel_;
  void (*round_)(const float*, BFloat16*, int64_t);
  void (*round_rest_)(const float*, const BFloat16*, int64_t, BFloat16*);
  void (*run_task_)(const WordTask&);
};

}  // namespace

std::unique_ptr<PackedProduct> make_bf16_tile_product(const float* weight, const float* bias, int64_t out, int64_t in) {
  return std::make_unique<Bf16TileProduct>(weight, bias, out, in);
}

}  // namespace vitrail::kernels
#endif
