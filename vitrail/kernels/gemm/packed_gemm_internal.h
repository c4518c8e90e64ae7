// SPDX-License-Identifier: Apache-2.0
#pragma once
// The implementations behind PackedLinear: each packs a weight in its own layout and multiplies with it.  One is chosen
// when a weight is packed (linear.cpp); a new precision or library is one more of them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "vitrail/kernels/gemm/dot_microkernels_internal.h"
#include "vitrail/kernels/gemm/linear.h"

namespace vitrail::kernels {

// Rows of x that are computed when they are read.  Called by several threads at once.
class RowSource {
 public:
  virtual ~RowSource() = default;
  virtual void write(int64_t row, float* x) const = 0;  // x [in]
};

// The arguments of PackedLinear::run.
struct GemmArgs {
  MatrixView<const float> x = {};
  MatrixView<float> y;
  LinearRows rows;
  Epilogue epilogue;
  std::byte* scratch = nullptr;
  const RowSource* row_source = nullptr;  // instead of x, where reads_rows_once()
};

// The rows of an output block (cache_blocking_internal.h): at most `max`, or `few` if the weight stays in the
// second-level cache, and a multiple of `tile`, that is complete register tiles (6 or 12 rows).
struct RowBlocking {
  int64_t max = 192;
  int64_t few = 48;
  int64_t tile = 6;
  int64_t alignment = 1;  // quantised rows of x begin at a multiple of so many times 4 bytes
};
// AMX multiplies 32 rows at a time, faster than the outer caches deliver a weight: blocks have more rows, so that it is
// read less often.  Processors with AMX have 2 MiB of second-level cache.  It loads 64 bytes of a row at a time, and a
// load across two cache lines reads both.
constexpr RowBlocking kAmxRows{.max = 256, .few = 64, .tile = 32, .alignment = 16};

class PackedGemm {
 public:
  virtual ~PackedGemm() = default;
  virtual void run(const GemmArgs& args) const = 0;
  virtual void prepare(int64_t /*rows*/, int64_t /*ldx*/, int64_t /*ldy*/) const {}
  virtual size_t scratch_bytes(const LinearRows& rows) const = 0;
  virtual size_t packed_bytes() const = 0;
  virtual Arithmetic arithmetic() const = 0;
  virtual const char* library() const { return nullptr; }  // null: kernels of the active instruction set
  virtual bool takes_correction() const { return false; }
  virtual bool reads_rows_once() const { return false; }
};

// A weight in int8, row by row: quantised from fp32 [out, in], or given as int8 values with a scale per row.
class Int8WeightSource {
 public:
  Int8WeightSource(const float* weight) : weight_(weight) {}  // NOLINT(google-explicit-constructor): the usual source
  Int8WeightSource(const int8_t* values, const float* scales) : values_(values), scales_(scales) {}

  // Writes row r's values [in] and returns its scale.  `quantize`: a function such as quantize_weight_row.
  float row(int64_t r, int64_t in, float (*quantize)(const float*, int64_t, int8_t*), int8_t* values) const {
    if (weight_) return quantize(weight_ + r * in, in, values);
    std::copy_n(values_ + r * in, in, values);
    return scales_[r];
  }

 private:
  const float* weight_ = nullptr;
  const int8_t* values_ = nullptr;
  const float* scales_ = nullptr;
};

// The implementation for a precision and the instruction set that is active now; and its name, or that of its library.
std::unique_ptr<PackedGemm> make_gemm(const float* weight, const float* bias, int64_t out, int64_t in,
                                      Precision precision);
std::unique_ptr<PackedGemm> make_gemm(const Int8WeightSource& weight, const float* bias, int64_t out, int64_t in);
const char* implementation_of(const PackedGemm& gemm);

// All take weight [out, in] row-major and bias [out] or null, read them, and do not keep them.

// The references (scalar_gemm.cpp).  The int8 one has the same quantised values as make_int8_gemm.
std::unique_ptr<PackedGemm> make_scalar_gemm(const float* weight, const float* bias, int64_t out, int64_t in);
std::unique_ptr<PackedGemm> make_scalar_int8_gemm(const Int8WeightSource& weight, const float* bias, int64_t out,
                                                  int64_t in);

// Our own kernels, for the instruction set that is active now; not for scalar.
std::unique_ptr<PackedGemm> make_fp32_gemm(const float* weight, const float* bias, int64_t out, int64_t in);
// microkernel: with panels of this layout.
std::unique_ptr<PackedGemm> make_bf16_gemm(const float* weight, const float* bias, int64_t out, int64_t in,
                                           DotMicrokernel microkernel, const PanelLayout& panel = {kAvx512Columns},
                                           const RowBlocking& row_blocking = {});
// microkernel: int16_microkernel() or an equivalent.
std::unique_ptr<PackedGemm> make_int16_gemm(const float* weight, const float* bias, int64_t out, int64_t in,
                                            DotMicrokernel microkernel);
// microkernel: int8_microkernel(), which widening_int8_microkernel() replaces if the weight could saturate in it,
// vnni_microkernel(), or an equivalent with panels of this layout.
std::unique_ptr<PackedGemm> make_int8_gemm(const Int8WeightSource& weight, const float* bias, int64_t out, int64_t in,
                                           DotMicrokernel microkernel,
                                           const PanelLayout& panel = {int8_panel_columns()},
                                           const RowBlocking& row_blocking = {});

// oneDNN's matmul.  Null if oneDNN has no fast implementation whose weight layout fits every number of rows.  Throws
// std::logic_error in a build without oneDNN.
std::unique_ptr<PackedGemm> make_onednn_gemm(const float* weight, const float* bias, int64_t out, int64_t in);

}  // namespace vitrail::kernels
