// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/precision.h"

#include "vitrail/kernels/gemm/linear.h"
#include "vitrail/ops/dispatch.h"

namespace vitrail::ops {
namespace {

thread_local DType active_dtype = DType::f32;

}  // namespace

MixedPrecision::MixedPrecision(DType dtype) : previous_(active_dtype) {
  if (dtype != DType::f32 && dtype != DType::bf16) throw Error("precision", "f32 or bf16", name_of(dtype));
  active_dtype = dtype;
}
MixedPrecision::~MixedPrecision() { active_dtype = previous_; }
DType MixedPrecision::current() { return active_dtype; }

bool has_bf16_gemm() { return kernels::multiplies_bf16(); }

DType gemm_dtype(const Tensor& x, const char* where) {
  const DType dtype = compute_dtype(x, where);
  return dtype == DType::f32 && x.dtype() != DType::f16 ? active_dtype : dtype;
}

}  // namespace vitrail::ops
