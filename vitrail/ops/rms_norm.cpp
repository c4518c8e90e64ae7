// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/rms_norm.h"

#include <algorithm>

#include "vitrail/kernels/rowwise/rms_norm.h"
#include "vitrail/kernels/rowwise/scalar_rowwise_internal.h"
#include "vitrail/ops/operation.h"

namespace vitrail::ops {
namespace {

void rms_norm_forward(const View<const float>& x, const float* gamma, double eps, float* y, int64_t ld) {
  const Rows from(x);
  kernels::rms_norm(x.data, from.ld, gamma, static_cast<float>(eps), y, ld, from.count, from.cols);
}
void rms_norm_forward(const View<const double>& x, const double* gamma, double eps, double* y, int64_t ld) {
  const Rows from(x);
  for (int64_t r = 0; r < from.count; ++r) {
    kernels::scalar::rms_norm_row(x.data + r * from.ld, gamma, eps, y + r * ld, from.cols);
  }
}

void rms_norm_backward(const float* x, const float* gamma, double eps, const float* grad, int64_t rows, int64_t cols,
                       float* grad_x, float* grad_gamma) {
  kernels::rms_norm_backward(x, gamma, static_cast<float>(eps), grad, rows, cols, grad_x, grad_gamma);
}
void rms_norm_backward(const double* x, const double* gamma, double eps, const double* grad, int64_t rows, int64_t cols,
                       double* grad_x, double* grad_gamma) {
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t at = r * cols;
    kernels::scalar::rms_norm_backward_row(x + at, gamma, eps, grad + at, cols, grad_x + at, grad_gamma);
  }
}

}  // namespace

Tensor rms_norm(const Tensor& x, const Tensor& gamma, double eps) {
  if (x.rank() < 1) throw Error("rms_norm", "x [..., C]", "a scalar");
  if (gamma.defined() && !(gamma.shape() == Shape{x.size(-1)})) {
    throw Error("rms_norm", str("gamma [", x.size(-1), "] for x ", x.shape()), gamma.shape().to_string());
  }
  return apply(
      {.name = "rms_norm",
       .shape = x.shape(),
       .kernel = [eps](auto in, auto out) { rms_norm_forward(in[0], in[1].data, eps, out[0].data, Rows(out[0]).ld); },
       .gradient =
           [eps](const auto& in, const auto&) {
             return backward_kernel(in, in, [eps](auto from, auto grads) {
               const Rows rows(from[0]);
               if (grads[1].data) std::fill_n(grads[1].data, rows.cols, 0);
               rms_norm_backward(from[1].data, from[2].data, eps, from[0].data, rows.count, rows.cols, grads[0].data,
                                 grads[1].data);
             });
           },
       .layout = with_evenly_spaced_rows,
       .profile = "RMS norm",
       .keeps_token_order = true,
       .onnx =
           [eps](OnnxValues& onnx, const auto& in, const auto&) {
             OnnxGraph& graph = onnx.graph();
             const std::string x = onnx.value_of(in[0]);
             const std::string mean_square = onnx.mean(graph.node("Mul", {x, x}), in[0].rank() - 1, true);
             const std::string shifted = graph.node("Add", {mean_square, graph.scalar(eps)});
             const std::string y = graph.node("Div", {x, graph.node("Sqrt", {shifted})});
             return in[1].defined() ? graph.node("Mul", {y, onnx.value_of(in[1])}) : y;
           }},
      {x, gamma});
}

}  // namespace vitrail::ops
