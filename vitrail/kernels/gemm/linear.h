// SPDX-License-Identifier: Apache-2.0
#pragma once
// Matrix multiplication, and linear layers with packed weights: y = activation(x Wᵀ + b) + residual.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "vitrail/base/dtype.h"
#include "vitrail/kernels/rowwise/activation.h"

namespace vitrail::kernels {

// c [m, n] = op(a) op(b) (+ c with accumulate), row-major; a is [m, k], or [k, m] with transpose_a, and b likewise.
// Packs nothing ahead: for weights that are used repeatedly, see PackedLinear.
void gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda,
          const float* b, int64_t ldb, bool accumulate, float* c, int64_t ldc);

// c [m, n] = op(a) op(b) + bias [n] (null: none) of bf16 operands with fp32 accumulators.  Only if multiplies_bf16();
// otherwise the operands are converted to fp32 first, by the caller.
bool multiplies_bf16();
void gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const BFloat16* a, int64_t lda,
          const BFloat16* b, int64_t ldb, const float* bias, float* c, int64_t ldc);
void gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const BFloat16* a, int64_t lda,
          const BFloat16* b, int64_t ldb, const float* bias, BFloat16* c, int64_t ldc);

// A row-major matrix in memory: element (r, c) is data[r * ld + c].
template <class T>
struct MatrixView {
  T* data = nullptr;
  int64_t ld = 0;
};

// The residual connection of a transformer block, y = data + scale ⊙ f(x).
struct Residual {
  const float* data = nullptr;  // [rows, out], row stride ld; null: no residual.  May be y itself.
  int64_t ld = 0;
  const float* scale = nullptr;  // [out] (LayerScale, Touvron et al. 2021); null: 1.  Only with data.
};

// What is applied to x Wᵀ + b before it is stored: the activation, then the residual.
struct Epilogue {
  Activation activation = Activation::none;
  Residual residual = {};
};

// Rows first, first + stride, first + 2 stride, … of x.  In int8 these are quantised in two terms, x ≈ high + low,
// where `low` quantises the error of `high`: about 8 bits more, for the work of one more row each.  Other precisions
// ignore it.
struct TwoTermRows {
  int64_t first = 0;
  int64_t stride = 0;  // 0: none
};

class PackedLinear;

// Adds a cheap approximation of E x, where W = Q + E, Q is the quantised weight and E its quantisation error.  The rows
// of x form groups of equal size.  The first rows of a group are multiplied by E; the others share E x̄, where x̄ is
// their mean:  y_r = Q x_r + E x_r + b  or  y_r = Q x_r + E x̄ + b.  So E is read once for a few rows of each group.
struct WeightCorrection {
  const PackedLinear* error = nullptr;  // E [out, in] in int8, packed with the bias b; null: no correction
  int64_t group_rows = 1;               // divides the number of rows
  int64_t individual_rows = 1;          // the first rows of a group that are multiplied by E on their own
};

// The rows of x, and which of them int8 computes more precisely.
struct LinearRows {
  int64_t count = 0;
  TwoTermRows two_term = {};
  WeightCorrection correction = {};  // only where PackedLinear::takes_correction()
};

// The precision of a linear layer's GEMM.  x, bias and y are fp32 in all of them.
enum class Precision : uint8_t {
  fp32,
  // 16-bit arithmetic.  With AVX-512 VNNI: int16 with a scale per row of x and of W and exact accumulators, about as
  // fast as bf16 and more accurate (int16_gemm.cpp).  With AMX and with 64-bit ARM's bf16: bf16.  Elsewhere: fp32 with
  // weights rounded to bf16.
  half,
  // W is int8 with a scale per output channel, x is uint8 with a scale and a zero point per row.  Accumulators are
  // exact and quantised values are the same on every processor.
  int8,
};
Precision precision_from_name(const std::string& name);  // also "bf16" for half; else throws Error that lists the names
const char* name_of(Precision precision);

// The arithmetic of a PackedLinear of this precision under active_isa(): "fp32", "int16", "bf16", "int8", or
// "fp32 (weights rounded to bf16)".
const char* arithmetic_of(Precision precision);

// What a GEMM multiplies.  Accumulators are int32 for int16 and int8, else fp32.
enum class Arithmetic : uint8_t { fp32, int16, bf16, int8 };
const char* name_of(Arithmetic arithmetic);

class PackedGemm;

// A linear layer's weight, packed once for any number of rows.  Immutable after construction: any number of threads may
// call run() at once, each with its own scratch.  The same rows with the same thread count give the same bits; below
// AVX-512, a row gives the same bits in every batch and with any thread count.
class PackedLinear {
 public:
  // weight [out, in] row-major; bias [out] or null.  Both are read here and not kept.
  PackedLinear(const float* weight, const float* bias, int64_t out_features, int64_t in_features,
               Precision precision = Precision::fp32);
  // int8, of weight = scales ⊙ values, values [out, in] and scales [out].  Throws std::logic_error if in_features is
  // above 65,000, where an accumulator could overflow.
  PackedLinear(const int8_t* values, const float* scales, const float* bias, int64_t out_features, int64_t in_features);
  ~PackedLinear();
  PackedLinear(PackedLinear&&) noexcept;
  PackedLinear& operator=(PackedLinear&&) noexcept;

  // x [rows, in] → y [rows, out] = epilogue(x Wᵀ + b).  y must not overlap x.  `scratch` has scratch_bytes(rows) bytes,
  // 64-byte aligned; it may be null when that is 0.
  void run(const MatrixView<const float>& x, const MatrixView<float>& y, const LinearRows& rows,
           const Epilogue& epilogue, std::byte* scratch) const;
  size_t scratch_bytes(const LinearRows& rows) const;
  // Makes what the first run() with these sizes would make (oneDNN's primitives), so that it is not slower.
  void prepare(int64_t rows, int64_t ldx, int64_t ldy) const;

  Arithmetic arithmetic() const;
  // What runs it: the name of the instruction set for which the weight was packed, or "oneDNN".
  const char* implementation() const { return implementation_; }
  bool takes_correction() const;  // LinearRows::correction is supported: int8
  size_t packed_bytes() const;
  int64_t out_features() const { return out_; }
  int64_t in_features() const { return in_; }

 private:
  int64_t out_, in_;
  std::unique_ptr<PackedGemm> gemm_;
  const char* implementation_ = nullptr;
};

}  // namespace vitrail::kernels
