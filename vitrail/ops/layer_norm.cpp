// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/layer_norm.h"

#include <algorithm>

#include "vitrail/kernels/rowwise/layer_norm.h"
#include "vitrail/kernels/rowwise/scalar_rowwise_internal.h"
#include "vitrail/ops/operation.h"

namespace vitrail::ops {
namespace {

void layer_norm_forward(const View<const float>& x, const float* gamma, const float* beta, double eps, float* y,
                        int64_t ld) {
  const Rows from(x);
  kernels::layer_norm(x.data, from.ld, gamma, beta, static_cast<float>(eps), y, ld, from.count, from.cols);
}
void layer_norm_forward(const View<const double>& x, const double* gamma, const double* beta, double eps, double* y,
                        int64_t ld) {
  const Rows from(x);
  kernels::scalar::layer_norm(x.data, from.ld, gamma, beta, eps, y, ld, from.count, from.cols);
}

void layer_norm_backward(const float* x, const float* gamma, double eps, const float* grad, int64_t rows, int64_t cols,
                         float* grad_x, float* grad_gamma, float* grad_beta) {
  kernels::layer_norm_backward(x, gamma, static_cast<float>(eps), grad, rows, cols, grad_x, grad_gamma, grad_beta);
}
void layer_norm_backward(const double* x, const double* gamma, double eps, const double* grad, int64_t rows,
                         int64_t cols, double* grad_x, double* grad_gamma, double* grad_beta) {
  kernels::scalar::layer_norm_backward(x, gamma, eps, grad, rows, cols, grad_x, grad_gamma, grad_beta);
}

}  // namespace

Tensor layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double eps) {
  if (x.rank() < 1) throw Error("layer_norm", "x [..., C]", "a scalar");
  for (const Tensor* p : {&gamma, &beta}) {
    if (p->defined() && !(p->shape() == Shape{x.size(-1)})) {
      throw Error("layer_norm", str("parameters of shape [", x.size(-1), "] for x ", x.shape()),
                  p->shape().to_string());
    }
  }
  return apply({.name = "layer_norm",
                .shape = x.shape(),
                .kernel =
                    [eps](auto in, auto out) {
                      layer_norm_forward(in[0], in[1].data, in[2].data, eps, out[0].data, Rows(out[0]).ld);
                    },
                .gradient =
                    [eps](const auto& in, const auto&) {
                      return backward_kernel(in, {in[0], in[1]}, [eps](auto from, auto grads) {
                        const Rows rows(from[0]);
                        for (const size_t i : {1, 2}) {
                          if (grads[i].data) std::fill_n(grads[i].data, rows.cols, 0);
                        }
                        layer_norm_backward(from[1].data, from[2].data, eps, from[0].data, rows.count, rows.cols,
                                            grads[0].data, grads[1].data, grads[2].data);
                      });
                    },
                .layout = with_evenly_spaced_rows,
                .profile = "layer norm",
                .keeps_token_order = true,
                .onnx =
                    [eps](OnnxValues& onnx, const auto& in, const auto&) {
                      const Tensor scale = in[1].defined() ? in[1] : Tensor::full({in[0].size(-1)}, 1);
                      std::vector<std::string> inputs{onnx.value_of(in[0]), onnx.value_of(scale)};
                      if (in[2].defined()) inputs.push_back(onnx.value_of(in[2]));
                      return onnx.graph().node("LayerNormalization", inputs, {{"epsilon", static_cast<float>(eps)}});
                    }},
               {x, gamma, beta});
}

}  // namespace vitrail::ops
