// SPDX-License-Identifier: Apache-2.0
#pragma once
// y = activation(x Wᵀ + b): the product that a Vision Transformer spends its time in.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "vitrail/base/dtype.h"
#include "vitrail/kernels/rowwise/activation.h"

namespace vitrail::kernels {

// c [m, n] = op(a) op(b) (+ c when accumulate), row-major, without packing ahead.  op transposes when asked:
// a is [m, k], or [k, m] with transpose_a.  For weights that are used again, see PackedLinear.
void gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda,
          const float* b, int64_t ldb, bool accumulate, float* c, int64_t ldc);

// c [m, n] = op(a) op(b) + bias [n] (null: none) of bf16 operands, summed in fp32.  c is f32 or bf16.  Only where
// multiplies_bf16(): elsewhere they are to be widened first.
bool multiplies_bf16();
void gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const BFloat16* a, int64_t lda,
          const BFloat16* b, int64_t ldb, const float* bias, float* c, int64_t ldc);
void gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const BFloat16* a, int64_t lda,
          const BFloat16* b, int64_t ldb, const float* bias, BFloat16* c, int64_t ldc);

// Added to a product: y = data + scale ⊙ (…).  What a transformer block does after attention and after its MLP.
struct Residual {
  const float* data = nullptr;  // [rows, out] with row stride ld; null: nothing is added.  May be y itself.
  int64_t ld = 0;
  const float* scale = nullptr;  // [out] (LayerScale), or null (1); only with data
};

class WeightCorrection;

// What a product computes with.  fp32.  bf16: numbers of 16 bits; where the processor multiplies these (AVX-512 VNNI),
// whole numbers with a step for each row of the weight and of activations, sums exact (int16_gemm.cpp), which is
// about as fast as bf16 and nearer to fp32; elsewhere weights are rounded to bf16, and it is as slow as fp32.  int8:
// weights by output channel (int8_weight.h) and activations by row (0 to 255 with a zero among them) as whole numbers,
// sums exact; the same numbers for the same rows on every processor.
enum class Precision : uint8_t { fp32, bf16, int8 };
Precision precision_from_name(const std::string& name);  // throws Error that lists the names
const char* name_of(Precision precision);

class PackedGemm;

// A weight matrix packed once in the layout that the product wants, for every number of rows.  Immutable after
// construction: any number of threads may call run() at once, each with a scratch of its own.  The same rows with the
// same thread count give the same bits; below AVX-512, a row gives them in every batch and with any thread count.
class PackedLinear {
 public:
  // weight [out, in] row-major; bias [out] or null.  Both are read here and not kept.
  PackedLinear(const float* weight, const float* bias, int64_t out_features, int64_t in_features,
               Precision precision = Precision::fp32);
  // In int8, of whole numbers [out, in] with a step for each row [out]: weight = step · numbers.  A row has at most
  // 65,000 (std::logic_error), by which a sum has room in 32 bits.
  PackedLinear(const int8_t* numbers, const float* steps, const float* bias, int64_t out_features, int64_t in_features);
  ~PackedLinear();
  PackedLinear(PackedLinear&&) noexcept;
  PackedLinear& operator=(PackedLinear&&) noexcept;

  // x [rows, in], row stride ldx → y [rows, out], row stride ldy: activation(x Wᵀ + b), then the residual.  y must not
  // overlap x.  `scratch` has scratch_bytes(rows, two_term_every), 64-byte aligned (may be null when that is 0).
  // two_term_every > 0: of rows 0, two_term_every, 2 two_term_every, … int8 keeps twice as many bits of x, for the work
  // of one row more each.  rest: of a weight that was rounded, with rest->bytes() of memory, 64-byte aligned; only
  // where takes_correction(), that is in int8.
  void run(const float* x, int64_t ldx, float* y, int64_t ldy, int64_t rows, Activation activation, std::byte* scratch,
           const Residual& residual = {}, int64_t two_term_every = 0, const WeightCorrection* rest = nullptr,
           std::byte* correction_scratch = nullptr) const;
  bool takes_correction() const;
  bool has_own_loops() const;  // run()'s are vitrail's (base/parallel.h), not another library's

  // Makes what the first run() with this number of rows would make (primitives, code), so that it is not slower.
  void prepare(int64_t rows, int64_t ldx, int64_t ldy, Activation activation) const;

  size_t scratch_bytes(int64_t rows, int64_t two_term_every = 0) const;
  size_t packed_bytes() const;
  int64_t out_features() const { return out_; }
  int64_t in_features() const { return in_; }

 private:
  int64_t out_, in_;
  std::unique_ptr<PackedGemm> product_;
};

}  // namespace vitrail::kernels
