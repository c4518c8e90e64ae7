// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/softmax.h"

#include "vitrail/base/parallel.h"
#include "vitrail/kernels/rowwise/scalar_rowwise_internal.h"
#include "vitrail/kernels/rowwise/softmax.h"
#include "vitrail/ops/operation.h"

namespace vitrail::ops {
namespace {

// grad_x = y ⊙ (grad − Σ grad · y)
template <class T>
void softmax_backward(const T* y, const T* grad, T* grad_x, int64_t rows, int64_t cols) {
  parallel_for(0, rows, 1 + 4096 / (cols + 1), [&](int64_t first, int64_t last) {
    for (int64_t at = first * cols; at < last * cols; at += cols) {
      T dot = 0;
      for (int64_t c = 0; c < cols; ++c) dot += grad[at + c] * y[at + c];
      for (int64_t c = 0; c < cols; ++c) grad_x[at + c] = y[at + c] * (grad[at + c] - dot);
    }
  });
}

void softmax(const float* x, float* y, int64_t rows, int64_t cols) { kernels::softmax(x, y, rows, cols); }
void softmax(const double* x, double* y, int64_t rows, int64_t cols) { kernels::scalar::softmax(x, y, rows, cols); }

}  // namespace

Tensor softmax(const Tensor& x) {
  const int64_t cols = x.size(-1), rows = cols ? x.numel() / cols : 0;
  return apply({.name = "softmax",
                .shape = x.shape(),
                .kernel = [=](auto in, auto out) { softmax(in[0].data, out[0].data, rows, cols); },
                .gradient =
                    [=](const auto& in, const auto& out) {
                      return backward_kernel(in, {out[0]}, [=](auto from, auto grads) {
                        softmax_backward(from[1].data, from[0].data, grads[0].data, rows, cols);
                      });
                    },
                .onnx =
                    [](OnnxValues& onnx, const auto& in, const auto&) {  // a row of −∞ alone is NaN there
                      return onnx.graph().node("Softmax", {onnx.value_of(in[0])}, {{"axis", int64_t{-1}}});
                    }},
               {x});
}

}  // namespace vitrail::ops
