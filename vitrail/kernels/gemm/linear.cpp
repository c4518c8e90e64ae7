// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/gemm/linear.h"

#include <array>
#include <stdexcept>
#include <vector>

#include "vitrail/base/cache_size_internal.h"
#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/kernels/gemm/gemm_tiles_internal.h"
#include "vitrail/kernels/gemm/onednn_internal.h"
#include "vitrail/kernels/gemm/packed_gemm_internal.h"
#include "vitrail/kernels/gemm/packing_gemm_internal.h"
#include "vitrail/kernels/gemm/scalar_gemm_internal.h"
#include "vitrail/kernels/isa/dispatch_internal.h"

namespace vitrail::kernels {
namespace {

// Our own GEMM applies the epilogue while the accumulators are in registers or cache, and uses work stealing, because
// cores can differ in speed.  oneDNN's packed matmul is used where rows of x are a multiple of 4 KiB apart and the 12
// rows of a register tile compete for fewer ways of one set of the first-level cache (8 on Zen; Intel's have 12).  Not
// below AVX-512, where oneDNN's sgemm packs both operands in each call.
std::unique_ptr<PackedGemm> make_avx512_gemm(const float* weight, const float* bias, int64_t out, int64_t in) {
  const bool rows_conflict_in_cache = in > 0 && in % 1024 == 0 && first_level_cache_ways() < 12;
  if (rows_conflict_in_cache && onednn::available() && out > 0) {
    if (auto gemm = make_onednn_gemm(weight, bias, out, in)) return gemm;
  }
  return make_fp32_gemm(weight, bias, out, in);
}

std::unique_ptr<PackedGemm> make_vector_int8_gemm(const Int8WeightSource& weight, const float* bias, int64_t out,
                                                  int64_t in) {
  const FeatureSet features = active_features();
  if (features.has(Feature::neon_i8mm))
    return make_int8_gemm(weight, bias, out, in, neon_i8mm_microkernel(), kNeonMatrixPanel);
  if (features.has(Feature::amx)) {
    return make_int8_gemm(weight, bias, out, in, amx_int8_microkernel(), {kAvx512Columns}, kAmxRows);
  }
  const DotMicrokernel microkernel = features.has(Feature::avx512_vnni)    ? vnni_microkernel()
                                     : features.has(Feature::neon_dotprod) ? neon_dotprod_microkernel()
                                                                           : int8_microkernel();
  return make_int8_gemm(weight, bias, out, in, microkernel);
}

// Rows: scalar, SSE4, AVX2, AVX-512, NEON.
using MakeGemm = std::unique_ptr<PackedGemm>(const float*, const float*, int64_t, int64_t);
using MakeInt8Gemm = std::unique_ptr<PackedGemm>(const Int8WeightSource&, const float*, int64_t, int64_t);
constexpr KernelTable<MakeGemm> kFp32Gemms{make_scalar_gemm, make_fp32_gemm, make_fp32_gemm, make_avx512_gemm,
                                           make_fp32_gemm};
constexpr KernelTable<MakeInt8Gemm> kInt8Gemms{make_scalar_int8_gemm, make_vector_int8_gemm, make_vector_int8_gemm,
                                               make_vector_int8_gemm, make_vector_int8_gemm};

std::unique_ptr<PackedGemm> make_half_gemm(const float* weight, const float* bias, int64_t out, int64_t in) {
  const FeatureSet features = active_features();
  if (features.has(Feature::amx)) {
    return make_bf16_gemm(weight, bias, out, in, amx_bf16_microkernel(), {kAvx512Columns}, kAmxRows);
  }
  if (features.has(Feature::neon_bf16))
    return make_bf16_gemm(weight, bias, out, in, neon_bf16_microkernel(), kNeonMatrixPanel);
  if (features.has(Feature::avx512_vnni)) return make_int16_gemm(weight, bias, out, in, int16_microkernel());
  std::vector<float> rounded(weight, weight + out * in);
  for (float& value : rounded) value = static_cast<float>(BFloat16(value));
  return dispatch(kFp32Gemms)(rounded.data(), bias, out, in);
}

// For any quantised values, int32 accumulators cannot overflow: 65,000 · 255 · 128 < 2³¹.
constexpr int64_t kMaxInt8Inputs = 65'000;

}  // namespace

std::unique_ptr<PackedGemm> make_gemm(const float* weight, const float* bias, int64_t out, int64_t in,
                                      Precision precision) {
  switch (precision) {
    case Precision::fp32:
      break;
    case Precision::half:
      return make_half_gemm(weight, bias, out, in);
    case Precision::int8:
      if (in <= kMaxInt8Inputs) return dispatch(kInt8Gemms)(weight, bias, out, in);
      break;
  }
  return dispatch(kFp32Gemms)(weight, bias, out, in);
}

std::unique_ptr<PackedGemm> make_gemm(const Int8WeightSource& weight, const float* bias, int64_t out, int64_t in) {
  if (in > kMaxInt8Inputs) throw std::logic_error("an int8 weight has more inputs than an int32 accumulator allows");
  return dispatch(kInt8Gemms)(weight, bias, out, in);
}

// What is to run a GEMM that was just packed.
const char* implementation_of(const PackedGemm& gemm) {
  return gemm.library() ? gemm.library() : name_of(active_isa());
}

namespace {

constexpr std::array kArithmetics{"fp32", "int16", "bf16", "int8"};
static_assert(kArithmetics.size() == static_cast<size_t>(Arithmetic::int8) + 1,
              "one name per arithmetic, in its order");
constexpr std::array kPrecisions{"fp32", "half", "int8"};
static_assert(kPrecisions.size() == static_cast<size_t>(Precision::int8) + 1, "one name per precision, in its order");

void scalar_gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda,
                 const float* b, int64_t ldb, bool accumulate, float* c, int64_t ldc) {
  parallel_for(0, m, 1, [&](int64_t first, int64_t last) {
    scalar::gemm(transpose_a, transpose_b, last - first, n, k, a + (transpose_a ? first : first * lda), lda, b, ldb,
                 accumulate, c + first * ldc, ldc);
  });
}

// oneDNN rejects null operands, and a build can be without it.
void onednn_gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda,
                 const float* b, int64_t ldb, bool accumulate, float* c, int64_t ldc) {
  if (m <= 0 || n <= 0 || k <= 0) {
    return scalar_gemm(transpose_a, transpose_b, m, n, k, a, lda, b, ldb, accumulate, c, ldc);
  }
  if (!onednn::available()) return packing_gemm(transpose_a, transpose_b, m, n, k, a, lda, b, ldb, accumulate, c, ldc);
  for_each_tile(m, n, k, [&](const Tile& t) {
    onednn::sgemm(transpose_a, transpose_b, t.rows, t.columns, k, a + t.row * (transpose_a ? 1 : lda), lda,
                  b + t.column * (transpose_b ? ldb : 1), ldb, accumulate, c + t.row * ldc + t.column, ldc);
  });
}

constexpr KernelTable<decltype(scalar_gemm)> kGemms{scalar_gemm, onednn_gemm, onednn_gemm, onednn_gemm, onednn_gemm};

template <class C>
void bf16_gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const BFloat16* a, int64_t lda,
               const BFloat16* b, int64_t ldb, const float* bias, C* c, int64_t ldc) {
  if (m > 0 && n > 0 && k > 0) {  // oneDNN rejects null operands
    if (active_features().has(Feature::neon_bf16)) {
      return packing_gemm(transpose_a, transpose_b, m, n, k, a, lda, b, ldb, bias, c, ldc);
    }
    for_each_tile(m, n, k, [&](const Tile& t) {
      onednn::matmul_bf16(transpose_a, transpose_b, t.rows, t.columns, k, a + t.row * (transpose_a ? 1 : lda), lda,
                          b + t.column * (transpose_b ? ldb : 1), ldb, bias ? bias + t.column : nullptr,
                          DTypeOf<C>::value, c + t.row * ldc + t.column, ldc);
    });
    return;
  }
  for (int64_t i = 0; i < m * n; ++i) c[i / n * ldc + i % n] = C(bias ? bias[i % n] : 0.0f);
}

}  // namespace

void gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda,
          const float* b, int64_t ldb, bool accumulate, float* c, int64_t ldc) {
  dispatch(kGemms)(transpose_a, transpose_b, m, n, k, a, lda, b, ldb, accumulate, c, ldc);
}

bool multiplies_bf16() {
  if (active_features().has(Feature::neon_bf16)) return true;
  return active_features().has(Feature::avx512_bf16) && onednn::available() &&
         features_of(onednn::effective_isa()).has(Feature::avx512_bf16);
}
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
const char* name_of(Arithmetic arithmetic) { return kArithmetics[static_cast<size_t>(arithmetic)]; }

const char* arithmetic_of(Precision precision) {
  switch (precision) {
    case Precision::fp32:
      break;
    case Precision::half:
      if (active_features().has(Feature::amx) || active_features().has(Feature::neon_bf16)) return "bf16";
      return active_features().has(Feature::avx512_vnni) ? "int16" : "fp32 (weights rounded to bf16)";
    case Precision::int8:
      return "int8";
  }
  return "fp32";
}

PackedLinear::PackedLinear(const float* weight, const float* bias, int64_t out_features, int64_t in_features,
                           Precision precision)
    : out_(out_features),
      in_(in_features),
      gemm_(make_gemm(weight, bias, out_features, in_features, precision)),
      implementation_(implementation_of(*gemm_)) {}

PackedLinear::PackedLinear(const int8_t* values, const float* scales, const float* bias, int64_t out_features,
                           int64_t in_features)
    : out_(out_features),
      in_(in_features),
      gemm_(make_gemm({values, scales}, bias, out_features, in_features)),
      implementation_(implementation_of(*gemm_)) {}

PackedLinear::~PackedLinear() = default;
PackedLinear::PackedLinear(PackedLinear&&) noexcept = default;
PackedLinear& PackedLinear::operator=(PackedLinear&&) noexcept = default;

void PackedLinear::run(const MatrixView<const float>& x, const MatrixView<float>& y, const LinearRows& rows,
                       const Epilogue& epilogue, std::byte* scratch) const {
  gemm_->run({.x = x, .y = y, .rows = rows, .epilogue = epilogue, .scratch = scratch});
}
size_t PackedLinear::scratch_bytes(const LinearRows& rows) const { return gemm_->scratch_bytes(rows); }
void PackedLinear::prepare(int64_t rows, int64_t ldx, int64_t ldy) const { gemm_->prepare(rows, ldx, ldy); }
Arithmetic PackedLinear::arithmetic() const { return gemm_->arithmetic(); }
bool PackedLinear::takes_correction() const { return gemm_->takes_correction(); }
size_t PackedLinear::packed_bytes() const { return gemm_->packed_bytes(); }

}  // namespace vitrail::kernels
