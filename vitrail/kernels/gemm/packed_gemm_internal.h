// SPDX-License-Identifier: Apache-2.0
#pragma once
// What PackedLinear is made of: one way to pack a weight and to multiply with it, chosen when the weight is packed.
// Private to kernels, its tests and benchmarks.  A product in another precision is one more of these.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "vitrail/kernels/gemm/dot_microkernels_internal.h"
#include "vitrail/kernels/gemm/linear.h"

namespace vitrail::kernels {

// See PackedLinear::run.
struct GemmArgs {
  MatrixView<const float> x;
  MatrixView<float> y;
  LinearRows rows;
  Epilogue epilogue;
  std::byte* scratch = nullptr;
};

// A weight's rows in 8 bits: from numbers of fp32 [out, in], which are rounded, or whole numbers with a step for each
// row.
class Int8Rows {
 public:
  Int8Rows(const float* weight) : weight_(weight) {}  // NOLINT(google-explicit-constructor): the usual one
  Int8Rows(const int8_t* numbers, const float* steps) : numbers_(numbers), steps_(steps) {}

  // Row r's numbers [in] and its step; `round` as quantize_weight_row (int8_weight.h).
  float take(int64_t r, int64_t in, float (*round)(const float*, int64_t, int8_t*), int8_t* numbers) const {
    if (weight_) return round(weight_ + r * in, in, numbers);
    std::copy_n(numbers_ + r * in, in, numbers);
    return steps_[r];
  }

 private:
  const float* weight_ = nullptr;
  const int8_t* numbers_ = nullptr;
  const float* steps_ = nullptr;
};

class PackedGemm {
 public:
  virtual ~PackedGemm() = default;
  virtual void run(const GemmArgs& args) const = 0;
  virtual void prepare(int64_t /*rows*/, int64_t /*ldx*/, int64_t /*ldy*/) const {}
  virtual size_t scratch_bytes(const LinearRows& rows) const = 0;
  virtual size_t packed_bytes() const = 0;
  virtual bool takes_correction() const { return false; }
  virtual bool has_own_loops() const { return true; }
};

// All take weight [out, in] row-major and bias [out] or null, and keep neither.
std::unique_ptr<PackedGemm> make_scalar_gemm(const float* weight, const float* bias, int64_t out, int64_t in);
// By Highway kernels, under the instruction set that is active now; not for scalar.
std::unique_ptr<PackedGemm> make_fp32_gemm(const float* weight, const float* bias, int64_t out, int64_t in);
// By oneDNN; null when it has no fast implementation that takes one layout for every number of rows.
// Not without oneDNN.
std::unique_ptr<PackedGemm> make_onednn_gemm(const float* weight, const float* bias, int64_t out, int64_t in);
// In 16 bits (see int16_gemm.cpp), with int16_microkernel() or what gives the same.
std::unique_ptr<PackedGemm> make_int16_gemm(const float* weight, const float* bias, int64_t out, int64_t in,
                                            DotMicrokernel sums);
// In 8 bits: the reference (int8_gemm_scalar.cpp), and Highway kernels (int8_gemm.cpp) with the same whole
// numbers; for a weight that int8_microkernel() is too narrow for, wide_int8_microkernel() takes its place.
std::unique_ptr<PackedGemm> make_scalar_int8_gemm(const Int8Rows& weight, const float* bias, int64_t out, int64_t in);
std::unique_ptr<PackedGemm> make_int8_gemm(const Int8Rows& weight, const float* bias, int64_t out, int64_t in,
                                           DotMicrokernel sums);

}  // namespace vitrail::kernels
