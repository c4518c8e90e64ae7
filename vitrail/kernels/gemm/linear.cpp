// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/gemm/linear.h"

#include <array>
#include <stdexcept>
#include <vector>

#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/kernels/gemm/onednn_internal.h"
#include "vitrail/kernels/gemm/packed_gemm_internal.h"
#include "vitrail/kernels/gemm/scalar_gemm_internal.h"
#include "vitrail/kernels/isa/isa.h"

namespace vitrail::kernels {
namespace {

// The reference: what VITRAIL_CPU=scalar runs.
class ScalarGemm : public PackedGemm {
 public:
  ScalarGemm(const float* weight, const float* bias, int64_t out, int64_t in)
      : out_(out), in_(in), weight_(weight, weight + out * in) {
    if (bias) bias_.assign(bias, bias + out);
  }

  void run(const GemmArgs& args) const override {
    parallel_for(0, args.rows.count, 1, [&](int64_t first, int64_t last) {
      std::vector<float> sums(out_);
      for (int64_t r = first; r < last; ++r) {
        scalar::gemm(false, true, 1, out_, in_, args.x.data + r * args.x.ld, args.x.ld, weight_.data(), in_, false,
                     sums.data(), out_);
        for (int64_t c = 0; c < out_; ++c) {
          const float biased = sums[c] + (bias_.empty() ? 0.0f : bias_[c]);
          args.y.data[r * args.y.ld + c] = scalar::epilogue(args.epilogue, biased, r, c);
        }
      }
    });
  }

  size_t scratch_bytes(const LinearRows&) const override { return 0; }
  size_t packed_bytes() const override { return (weight_.size() + bias_.size()) * sizeof(float); }

 private:
  int64_t out_, in_;
  std::vector<float> weight_, bias_;
};

// Our tiles have bias, activation and residual in them and share out what a slower core has left.  oneDNN's packed
// matmul (AVX-512 only; 2.6's sgemm packs both operands anew in each call) is the faster one where rows of x lie a
// multiple of 4 KiB apart, so that a tile's 12 have their values in one set of the first-level cache, which holds 8
// lines: copying them first, tile by tile, gained 5 % at 197 rows and nothing at 1576.  Zen 4, GFLOP/s on two cores
// (peak 232), with GELU in brackets, and the whole of ViT-Ti, S, B and the CIFAR model in fp32 by tiles: 1 to 10 % (fc2
// of ViT-B by oneDNN) faster than by oneDNN.
//                          tiles          oneDNN
//   rows × in × out
//   197 × 192 × 768        214 (204)      222 (198)
//   197 × 768 × 3072       213 (215)      215 (206)
//   1576 × 192 × 768       218 (199)      216 (199)
//   1576 × 384 × 1536      214 (212)      218 (202)
//   1576 × 3072 × 768      197            218           ViT-L, whose rows have 1024 and 4096: 2650 and 2330 ms for 4
// In 16 bits the tiles reach 213 on a core, with x's rounding, and oneDNN's packed product of bf16 216 (197 × 768 ×
// 3072).
std::unique_ptr<PackedGemm> make_fp32_product(const float* weight, const float* bias, int64_t out, int64_t in) {
  if (active_isa() == Isa::scalar) return make_scalar_gemm(weight, bias, out, in);
  const bool crowded = in > 0 && in % 1024 == 0;
  if (crowded && active_features().has(Feature::avx512) && onednn::available() && out > 0) {
    if (auto product = make_onednn_gemm(weight, bias, out, in)) return product;
  }
  return make_fp32_gemm(weight, bias, out, in);
}

std::unique_ptr<PackedGemm> make_bf16_product(const float* weight, const float* bias, int64_t out, int64_t in) {
  if (active_features().has(Feature::avx512_vnni)) return make_int16_gemm(weight, bias, out, in, int16_microkernel());
  std::vector<float> rounded(weight, weight + out * in);
  for (float& value : rounded) value = static_cast<float>(BFloat16(value));
  return make_fp32_product(rounded.data(), bias, out, in);
}

// Of which a sum fits into 32 bits, whatever they are: 2^31 / (255 · 128).
constexpr int64_t kMostInt8Inputs = 65'000;

std::unique_ptr<PackedGemm> make_int8_product(const Int8Rows& weight, const float* bias, int64_t out, int64_t in) {
  if (active_isa() == Isa::scalar) return make_scalar_int8_gemm(weight, bias, out, in);
  const DotMicrokernel sums = active_features().has(Feature::avx512_vnni) ? vnni_microkernel() : int8_microkernel();
  return make_int8_gemm(weight, bias, out, in, sums);
}

std::unique_ptr<PackedGemm> make_product(const float* weight, const float* bias, int64_t out, int64_t in,
                                         Precision precision) {
  switch (precision) {
    case Precision::fp32:
      break;
    case Precision::half:
      return make_bf16_product(weight, bias, out, in);
    case Precision::int8:
      if (in <= kMostInt8Inputs) return make_int8_product(weight, bias, out, in);
      break;
  }
  return make_fp32_product(weight, bias, out, in);
}

constexpr std::array kPrecisions{"fp32", "half", "int8"};
static_assert(kPrecisions.size() == static_cast<size_t>(Precision::int8) + 1, "one name per precision, in its order");

}  // namespace

std::unique_ptr<PackedGemm> make_scalar_gemm(const float* weight, const float* bias, int64_t out, int64_t in) {
  return std::make_unique<ScalarGemm>(weight, bias, out, in);
}

void gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda,
          const float* b, int64_t ldb, bool accumulate, float* c, int64_t ldc) {
  if (active_isa() != Isa::scalar && onednn::available() && m > 0 && n > 0 && k > 0) {  // oneDNN refuses null operands
    onednn::sgemm(transpose_a, transpose_b, m, n, k, a, lda, b, ldb, accumulate, c, ldc);
    return;
  }
  parallel_for(0, m, 1, [&](int64_t first, int64_t last) {
    scalar::gemm(transpose_a, transpose_b, last - first, n, k, a + (transpose_a ? first : first * lda), lda, b, ldb,
                 accumulate, c + first * ldc, ldc);
  });
}

bool multiplies_bf16() {
  return active_features().has(Feature::avx512_bf16) && onednn::available() &&
         features_of(onednn::effective_isa()).has(Feature::avx512_bf16);
}

namespace {

template <class C>
void bf16_gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const BFloat16* a, int64_t lda,
               const BFloat16* b, int64_t ldb, const float* bias, C* c, int64_t ldc) {
  if (m > 0 && n > 0 && k > 0) {  // oneDNN refuses null operands
    onednn::matmul_bf16(transpose_a, transpose_b, m, n, k, a, lda, b, ldb, bias, DTypeOf<C>::value, c, ldc);
    return;
  }
  for (int64_t i = 0; i < m * n; ++i) c[i / n * ldc + i % n] = C(bias ? bias[i % n] : 0.0f);
}

}  // namespace

void gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const BFloat16* a, int64_t lda,
          const BFloat16* b, int64_t ldb, const float* bias, float* c, int64_t ldc) {
  bf16_gemm(transpose_a, transpose_b, m, n, k, a, lda, b, ldb, bias, c, ldc);
}
void gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const BFloat16* a, int64_t lda,
          const BFloat16* b, int64_t ldb, const float* bias, BFloat16* c, int64_t ldc) {
  bf16_gemm(transpose_a, transpose_b, m, n, k, a, lda, b, ldb, bias, c, ldc);
}

Precision precision_from_name(const std::string& name) {
  for (size_t i = 0; i < kPrecisions.size(); ++i) {
    if (name == kPrecisions[i]) return static_cast<Precision>(i);
  }
  if (name == "bf16") return Precision::half;
  throw Error("precision", "fp32, half or int8", "'" + name + "'");
}
const char* name_of(Precision precision) { return kPrecisions[static_cast<size_t>(precision)]; }

const char* arithmetic_of(Precision precision) {
  switch (precision) {
    case Precision::fp32:
      break;
    case Precision::half:
      return active_features().has(Feature::avx512_vnni) ? "int16" : "fp32 (weights rounded to bf16)";
    case Precision::int8:
      return "int8";
  }
  return "fp32";
}

PackedLinear::PackedLinear(const float* weight, const float* bias, int64_t out_features, int64_t in_features,
                           Precision precision)
    : out_(out_features), in_(in_features), gemm_(make_product(weight, bias, out_features, in_features, precision)) {}

PackedLinear::PackedLinear(const int8_t* numbers, const float* steps, const float* bias, int64_t out_features,
                           int64_t in_features)
    : out_(out_features), in_(in_features) {
  if (in_ > kMostInt8Inputs) throw std::logic_error("a row of 8 bits whose sum may not fit into 32");
  gemm_ = make_int8_product({numbers, steps}, bias, out_, in_);
}

PackedLinear::~PackedLinear() = default;
PackedLinear::PackedLinear(PackedLinear&&) noexcept = default;
PackedLinear& PackedLinear::operator=(PackedLinear&&) noexcept = default;

void PackedLinear::run(const MatrixView<const float>& x, const MatrixView<float>& y, const LinearRows& rows,
                       const Epilogue& epilogue, std::byte* scratch) const {
  gemm_->run({.x = x, .y = y, .rows = rows, .epilogue = epilogue, .scratch = scratch});
}
size_t PackedLinear::scratch_bytes(const LinearRows& rows) const { return gemm_->scratch_bytes(rows); }
void PackedLinear::prepare(int64_t rows, int64_t ldx, int64_t ldy) const { gemm_->prepare(rows, ldx, ldy); }
bool PackedLinear::takes_correction() const { return gemm_->takes_correction(); }
bool PackedLinear::has_own_loops() const { return gemm_->has_own_loops(); }
size_t PackedLinear::packed_bytes() const { return gemm_->packed_bytes(); }

}  // namespace vitrail::kernels
