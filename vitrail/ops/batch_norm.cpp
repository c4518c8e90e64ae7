// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/batch_norm.h"

#include <cmath>
#include <vector>

#include "vitrail/base/parallel.h"
#include "vitrail/ops/operation.h"

namespace vitrail::ops {
namespace {

// Calls body(first, last) on ranges of columns, in parallel.  Each thread sums the rows of its columns in their order,
// so that results do not depend on the threads.
void for_column_ranges(int64_t rows, int64_t cols, RangeBody body) {
  parallel_for(0, cols, 1 + 16384 / (rows + 1), body);  // 16384 elements take longer than waking a thread
}

// y [B, D]; means and inverses [D] become the mean and 1 / √(variance + ε) of each column.
template <class T>
void batch_norm_forward(const View<const T>& x, const T* gamma, const T* beta, double eps, T* y, T* means,
                        T* inverses) {
  const Rows rows(x);
  const double count = static_cast<double>(rows.count);
  for_column_ranges(rows.count, rows.cols, [&](int64_t first, int64_t last) {
    std::vector<double> sums(static_cast<size_t>(last - first)), squares(sums);
    const auto for_elements = [&](auto each) {
      for (int64_t at = 0; at < rows.count * rows.cols; at += rows.cols) {
        for (int64_t c = first; c < last; ++c) each(at + c, c);
      }
    };
    for_elements([&](int64_t i, int64_t c) { sums[c - first] += static_cast<double>(x.data[i]); });
    for (double& sum : sums) sum /= count;
    for_elements([&](int64_t i, int64_t c) {
      const double difference = static_cast<double>(x.data[i]) - sums[c - first];
      squares[c - first] += difference * difference;
    });
    for (int64_t c = first; c < last; ++c) {
      means[c] = static_cast<T>(sums[c - first]);
      inverses[c] = static_cast<T>(1 / std::sqrt(squares[c - first] / count + eps));
    }
    for_elements([&](int64_t i, int64_t c) {
      y[i] = (x.data[i] - means[c]) * inverses[c] * (gamma ? gamma[c] : T(1)) + (beta ? beta[c] : T(0));
    });
  });
}

// With x̂ = (x − mean) / √(variance + ε):  grad_gamma = Σ grad · x̂,  grad_beta = Σ grad,
//   grad_x = γ / √(variance + ε) · (grad − mean(grad) − x̂ · mean(grad · x̂)).
// grad_gamma and grad_beta may be null.
template <class T>
void batch_norm_backward(const View<const T>& grad, const T* x, const T* gamma, const T* means, const T* inverses,
                         T* grad_x, T* grad_gamma, T* grad_beta) {
  const Rows rows(grad);
  const double count = static_cast<double>(rows.count);
  for_column_ranges(rows.count, rows.cols, [&](int64_t first, int64_t last) {
    std::vector<double> sums(static_cast<size_t>(last - first)), products(sums);
    const auto normalized = [&](int64_t i, int64_t c) { return (x[i] - means[c]) * inverses[c]; };
    for (int64_t at = 0; at < rows.count * rows.cols; at += rows.cols) {
      for (int64_t c = first; c < last; ++c) {
        sums[c - first] += static_cast<double>(grad.data[at + c]);
        products[c - first] += static_cast<double>(grad.data[at + c] * normalized(at + c, c));
      }
    }
    for (int64_t c = first; c < last; ++c) {
      if (grad_gamma) grad_gamma[c] = static_cast<T>(products[c - first]);
      if (grad_beta) grad_beta[c] = static_cast<T>(sums[c - first]);
    }
    for (double& sum : sums) sum /= count;
    for (double& product : products) product /= count;
    for (int64_t at = 0; at < rows.count * rows.cols; at += rows.cols) {
      for (int64_t c = first; c < last; ++c) {
        const T centred = grad.data[at + c] - static_cast<T>(sums[c - first]) -
                          normalized(at + c, c) * static_cast<T>(products[c - first]);
        grad_x[at + c] = centred * inverses[c] * (gamma ? gamma[c] : T(1));
      }
    }
  });
}

}  // namespace

Tensor batch_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double eps) {
  if (x.rank() != 2 || x.size(0) < 2) throw Error("batch_norm", "x [B, D] of at least 2 rows", str(x.shape()));
  const Shape columns{x.size(1)};
  for (const Tensor* p : {&gamma, &beta}) {
    if (p->defined() && !(p->shape() == columns)) {
      throw Error("batch_norm", str("parameters of shape ", columns, " for x ", x.shape()), str(p->shape()));
    }
  }
  return apply({.name = "batch_norm",
                .shape = x.shape(),
                .further_results = {{columns}, {columns}},
                .kernel =
                    [eps](auto in, auto out) {
                      batch_norm_forward(in[0], in[1].data, in[2].data, eps, out[0].data, out[1].data, out[2].data);
                    },
                .gradient =
                    [](const auto& in, const auto& out) {
                      return backward_kernel(in, {in[0], in[1], out[1], out[2]}, [](auto from, auto grads) {
                        batch_norm_backward(from[0], from[1].data, from[2].data, from[3].data, from[4].data,
                                            grads[0].data, grads[1].data, grads[2].data);
                      });
                    },
                .profile = "batch norm",
                .plain_loop = true},
               {x, gamma, beta});
}

}  // namespace vitrail::ops
