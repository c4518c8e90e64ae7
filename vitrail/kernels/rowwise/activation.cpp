// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/rowwise/activation.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/rowwise/activation.cpp"
#include "vitrail/kernels/isa/highway-inl.h"
// After highway-inl.h: what is compiled for each target.
#include "vitrail/kernels/isa/vector_memory-inl.h"
#include "vitrail/kernels/rowwise/activation-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {

void activate_span(Activation activation, const float* x, float* y, int64_t n) {
  with_activation(activation, [=](auto constant) HWY_ATTR {
    constexpr Activation kind = constant();
    const hn::ScalableTag<float> d;
    for_each_vector(d, n, [=](int64_t i, auto memory) VITRAIL_INLINE_ATTR {
      memory.store(activate<kind>(d, memory.load(x + i)), y + i);
    });
  });
}

void add_bias_row(Activation activation, const float* bias, float* x, float* y, int64_t cols) {
  with_activation(activation, [=](auto constant) HWY_ATTR {
    constexpr Activation kind = constant();
    const hn::ScalableTag<float> d;
    for_each_vector(d, cols, [=](int64_t c, auto memory) VITRAIL_INLINE_ATTR {
      const auto sum = hn::Add(memory.load(x + c), memory.load(bias + c));
      memory.store(sum, x + c);
      if (y) memory.store(activate<kind>(d, sum), y + c);
    });
  });
}

void activation_backward_span(Activation activation, const float* x, const float* grad, float* out, int64_t n) {
  with_activation(activation, [=](auto constant) HWY_ATTR {
    constexpr Activation kind = constant();
    const hn::ScalableTag<float> d;
    for_each_vector(d, n, [=](int64_t i, auto memory) VITRAIL_INLINE_ATTR {
      const auto derivative = activation_derivative<kind>(d, memory.load(x + i));
      memory.store(hn::Mul(memory.load(grad + i), derivative), out + i);
    });
  });
}

void silu_gate_row(const float* x, float* y, int64_t cols) {
  const hn::ScalableTag<float> d;
  for_each_vector(d, cols, [=](int64_t c, auto memory) VITRAIL_INLINE_ATTR {
    const auto gate = activate<Activation::silu>(d, memory.load(x + c));
    memory.store(hn::Mul(gate, memory.load(x + cols + c)), y + c);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "vitrail/base/enum_name_internal.h"
#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/kernels/rowwise/scalar_rowwise_internal.h"

namespace vitrail::kernels {
namespace {

VITRAIL_EXPORT(activate_span, scalar::activate_span);
VITRAIL_EXPORT(add_bias_row, scalar::add_bias_row);
VITRAIL_EXPORT(activation_backward_span, scalar::activation_backward_span);
VITRAIL_EXPORT(silu_gate_row, scalar::silu_gate);

constexpr int64_t kElementsPerTask = 4096;  // GELU of these takes as long as starting the other threads

int64_t rows_per_task(int64_t cols) { return 1 + kElementsPerTask / (cols + 1); }

}  // namespace

const char* name_of(Activation activation) {
  switch (activation) {
    case Activation::none:
      return "none";
    case Activation::gelu:
      return "gelu";
    case Activation::gelu_tanh:
      return "gelu_tanh";
    case Activation::quick_gelu:
      return "quick_gelu";
    case Activation::relu:
      return "relu";
    case Activation::silu:
      return "silu";
    case Activation::tanh:
      return "tanh";
  }
  return nullptr;
}

Activation activation_from_name(const std::string& name) {
  const auto found = enum_from_name<Activation>(name);
  if (found && *found != Activation::none) return *found;
  throw Error("activation", "gelu, gelu_tanh, quick_gelu, relu, silu or tanh", "'" + name + "'");
}

void activate(Activation activation, const float* x, float* y, int64_t n) {
  auto* const span = &VITRAIL_DISPATCH(activate_span);
  parallel_for(0, n, kElementsPerTask,
               [&](int64_t first, int64_t last) { span(activation, x + first, y + first, last - first); });
}

void add_bias(Activation activation, const float* bias, float* x, float* y, int64_t rows, int64_t cols) {
  auto* const one_row = &VITRAIL_DISPATCH(add_bias_row);
  parallel_for(0, rows, rows_per_task(cols), [&](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r) one_row(activation, bias, x + r * cols, y ? y + r * cols : nullptr, cols);
  });
}

void activation_backward(Activation activation, const float* x, const float* grad, float* out, int64_t n) {
  auto* const span = &VITRAIL_DISPATCH(activation_backward_span);
  parallel_for(0, n, kElementsPerTask, [&](int64_t first, int64_t last) {
    span(activation, x + first, grad + first, out + first, last - first);
  });
}

void silu_gate(const float* x, int64_t ldx, float* y, int64_t ldy, int64_t rows, int64_t cols) {
  auto* const one_row = &VITRAIL_DISPATCH(silu_gate_row);
  parallel_for(0, rows, rows_per_task(cols), [&](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r) one_row(x + r * ldx, y + r * ldy, cols);
  });
}

}  // namespace vitrail::kernels
#endif
