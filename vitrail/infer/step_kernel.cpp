// SPDX-License-Identifier: Apache-2.0
#include "vitrail/infer/step_kernel_internal.h"

#include "vitrail/kernels/attention/attention.h"
#include "vitrail/kernels/isa/isa.h"

namespace vitrail::infer {
namespace {

using kernels::Arithmetic;
using ops::OpKind;

// Operations that are loops in plain C++, which no instruction set changes.
bool is_plain_loop(OpKind kind) {
  return kind == OpKind::patchify || kind == OpKind::add || kind == OpKind::mul || kind == OpKind::cat ||
         kind == OpKind::mean || kind == OpKind::copy || kind == OpKind::embedding;
}

std::string kernel_name(const ops::Operation& op) {
  switch (op.kind) {
    case OpKind::layer_norm:
      return "layer norm";
    case OpKind::rms_norm:
      return "RMS norm";
    case OpKind::residual_add:
      return "residual add";
    case OpKind::silu_gate:
      return "SiLU gate";
    case OpKind::merge_tokens:
      return "token merging";
    case OpKind::activation:
      return kernels::name_of(op.attributes.activation);
    case OpKind::custom:
      return op.attributes.custom->name;
    default:
      return name_of(op.kind);
  }
}

Arithmetic arithmetic_of(const ops::Operation& op, kernels::Precision attention) {
  const bool has_half =
      op.kind == OpKind::attention || (op.kind == OpKind::custom && op.attributes.custom->compute_half);
  const bool half = has_half && attention == kernels::Precision::half && kernels::attention_multiplies_bf16();
  return half ? Arithmetic::bf16 : Arithmetic::fp32;
}

}  // namespace

StepKernel kernel_of(const kernels::PackedLinear& linear) {
  const std::string implementation = linear.implementation(), name = kernels::name_of(linear.arithmetic());
  const bool own = implementation != "oneDNN";
  return {name + (own ? " GEMM" : " GEMM (" + implementation + ")"), implementation, linear.arithmetic()};
}

StepKernel kernel_of(const ops::Operation& op, kernels::Precision attention) {
  const Arithmetic arithmetic = arithmetic_of(op, attention);
  const kernels::Isa isa = is_plain_loop(op.kind) ? kernels::Isa::scalar : kernels::active_isa();
  std::string name = kernel_name(op);
  if (op.kind == OpKind::attention) name += std::string(" ") + kernels::name_of(arithmetic);
  return {std::move(name), kernels::name_of(isa), arithmetic};
}

}  // namespace vitrail::infer
