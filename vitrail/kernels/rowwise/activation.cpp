// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/rowwise/activation.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/rowwise/activation.cpp"
#include "vitrail/kernels/isa/highway-inl.h"
// After highway-inl.h: what is compiled for each target.
#include "vitrail/kernels/isa/vector_math-inl.h"
#include "vitrail/kernels/isa/vector_memory-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {

template <Activation kind>
void activate_all(const float* x, float* y, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(activate<kind>(d, hn::LoadU(d, x + i)), d, y + i);
  if (i < n) store_first(d, activate<kind>(d, load_first(d, x + i, n - i)), y + i, n - i);
}

void activate_span(Activation activation, const float* x, float* y, int64_t n) {
  with_activation(activation, [=](auto kind) HWY_ATTR { activate_all<kind()>(x, y, n); });
}

// y may be null: the addition alone.
template <Activation kind>
void add_bias_all(const float* bias, float* x, float* y, int64_t cols) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t c = 0;
  for (; c + lanes <= cols; c += lanes) {
    const auto sum = hn::Add(hn::LoadU(d, x + c), hn::LoadU(d, bias + c));
    hn::StoreU(sum, d, x + c);
    if (y) hn::StoreU(activate<kind>(d, sum), d, y + c);
  }
  if (const int64_t left = cols - c; left > 0) {
    const auto sum = hn::Add(load_first(d, x + c, left), load_first(d, bias + c, left));
    store_first(d, sum, x + c, left);
    if (y) store_first(d, activate<kind>(d, sum), y + c, left);
  }
}

void add_bias_row(Activation activation, const float* bias, float* x, float* y, int64_t cols) {
  with_activation(activation, [=](auto kind) HWY_ATTR { add_bias_all<kind()>(bias, x, y, cols); });
}

template <Activation kind>
void slope_all(const float* x, const float* grad, float* out, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(hn::Mul(hn::LoadU(d, grad + i), slope<kind>(d, hn::LoadU(d, x + i))), d, out + i);
  }
  if (const int64_t left = n - i; left > 0) {
    store_first(d, hn::Mul(load_first(d, grad + i, left), slope<kind>(d, load_first(d, x + i, left))), out + i, left);
  }
}

void activation_backward_span(Activation activation, const float* x, const float* grad, float* out, int64_t n) {
  with_activation(activation, [=](auto kind) HWY_ATTR { slope_all<kind()>(x, grad, out, n); });
}

void silu_gate_row(const float* x, float* y, int64_t cols) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t c = 0;
  for (; c + lanes <= cols; c += lanes) {
    const auto gate = activate<Activation::silu>(d, hn::LoadU(d, x + c));
    hn::StoreU(hn::Mul(gate, hn::LoadU(d, x + cols + c)), d, y + c);
  }
  if (c < cols) {
    const auto gate = activate<Activation::silu>(d, load_first(d, x + c, cols - c));
    store_first(d, hn::Mul(gate, load_first(d, x + cols + c, cols - c)), y + c, cols - c);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <array>

#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/kernels/rowwise/scalar_rowwise_internal.h"

namespace vitrail::kernels {
namespace {

VITRAIL_EXPORT(activate_span, scalar::activate_span);
VITRAIL_EXPORT(add_bias_row, scalar::add_bias_row);
VITRAIL_EXPORT(activation_backward_span, scalar::activation_backward_span);
VITRAIL_EXPORT(silu_gate_row, scalar::silu_gate);

constexpr std::array kNames{"none", "gelu", "gelu_tanh", "quick_gelu", "relu", "silu", "tanh"};
constexpr int64_t kElementsPerTask = 4096;  // about 2 µs of GELU: what it costs to wake a team

}  // namespace

const char* name_of(Activation activation) { return kNames[static_cast<size_t>(activation)]; }

Activation activation_from_name(const std::string& name) {
  for (size_t i = 1; i < kNames.size(); ++i) {
    if (name == kNames[i]) return static_cast<Activation>(i);
  }
  throw Error("activation", "gelu, gelu_tanh, quick_gelu, relu, silu or tanh", "'" + name + "'");
}

void activate(Activation activation, const float* x, float* y, int64_t n) {
  auto* const span = &VITRAIL_DISPATCH(activate_span);
  parallel_for(0, n, kElementsPerTask,
               [&](int64_t first, int64_t last) { span(activation, x + first, y + first, last - first); });
}

void add_bias(Activation activation, const float* bias, float* x, float* y, int64_t rows, int64_t cols) {
  auto* const one_row = &VITRAIL_DISPATCH(add_bias_row);
  parallel_for(0, rows, 1 + kElementsPerTask / (cols + 1), [&](int64_t first, int64_t last) {
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
  parallel_for(0, rows, 1 + kElementsPerTask / (cols + 1), [&](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r) one_row(x + r * ldx, y + r * ldy, cols);
  });
}

}  // namespace vitrail::kernels
#endif
