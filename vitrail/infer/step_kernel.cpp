// SPDX-License-Identifier: Apache-2.0
#include "vitrail/infer/step_kernel_internal.h"

#include "vitrail/kernels/attention/attention.h"
#include "vitrail/kernels/isa/isa.h"

namespace vitrail::infer {
namespace {

using kernels::Arithmetic;

Arithmetic arithmetic_of(const ops::Operation& op, kernels::Precision attention) {
  const bool half = op.half_kernel && attention == kernels::Precision::half && kernels::attention_multiplies_bf16();
  return half ? Arithmetic::bf16 : Arithmetic::fp32;
}

StepKernel gemm(const std::string& implementation, Arithmetic arithmetic) {
  const bool own = implementation != "oneDNN";
  return {kernels::name_of(arithmetic) + std::string(own ? " GEMM" : " GEMM (" + implementation + ")"), implementation,
          arithmetic};
}

}  // namespace

StepKernel kernel_of(const kernels::PackedLinear& linear) { return gemm(linear.implementation(), linear.arithmetic()); }

StepKernel kernel_of(const kernels::PackedConvolution& convolution) {
  StepKernel kernel = gemm(convolution.implementation(), convolution.arithmetic());
  if (convolution.is_winograd()) kernel.name += " (Winograd)";
  return kernel;
}

StepKernel kernel_of(const ops::Operation& op, kernels::Precision attention) {
  const Arithmetic arithmetic = arithmetic_of(op, attention);
  const kernels::Isa isa = op.plain_loop ? kernels::Isa::scalar : kernels::active_isa();
  std::string name = op.profile.empty() ? op.name : op.profile;
  if (op.kind == ops::OpKind::attention) name += std::string(" ") + kernels::name_of(arithmetic);
  return {std::move(name), kernels::name_of(isa), arithmetic};
}

}  // namespace vitrail::infer
