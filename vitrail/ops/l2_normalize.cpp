// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/l2_normalize.h"

#include <algorithm>

#include "vitrail/base/parallel.h"
#include "vitrail/kernels/rowwise/l2_normalize.h"
#include "vitrail/ops/operation.h"

namespace vitrail::ops {
namespace {

void for_row_ranges(int64_t count, int64_t cols, RangeBody body) {
  parallel_for(0, count, 1 + 16384 / (cols + 1), body);
}

// y = x / max(‖x‖, kMinNorm), and norms [rows] = ‖x‖.
template <class T>
void l2_normalize_forward(const View<const T>& x, T* y, T* norms) {
  const Rows rows(x);
  for_row_ranges(rows.count, rows.cols, [&](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r) {
      T* const row = y + r * rows.cols;
      std::copy_n(x.data + r * rows.cols, rows.cols, row);
      norms[r] = static_cast<T>(kernels::normalize_row(row, rows.cols));
    }
  });
}

// grad_x = (grad − y · Σ grad y) / ‖x‖.  The length of a row below kMinNorm is constant.
template <class T>
void l2_normalize_backward(const View<const T>& grad, const T* y, const T* norms, T* grad_x) {
  const Rows rows(grad);
  for_row_ranges(rows.count, rows.cols, [&](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r) {
      const int64_t at = r * rows.cols;
      const double norm = std::max(static_cast<double>(norms[r]), kernels::kMinNorm);
      double product = 0;
      for (int64_t c = 0; c < rows.cols; ++c) product += static_cast<double>(grad.data[at + c] * y[at + c]);
      if (static_cast<double>(norms[r]) < kernels::kMinNorm) product = 0;
      for (int64_t c = 0; c < rows.cols; ++c) {
        grad_x[at + c] = (grad.data[at + c] - y[at + c] * static_cast<T>(product)) * static_cast<T>(1 / norm);
      }
    }
  });
}

}  // namespace

Tensor l2_normalize(const Tensor& x) {
  if (x.rank() < 1) throw Error("l2_normalize", "x [..., C]", "a scalar");
  return apply({.name = "l2_normalize",
                .shape = x.shape(),
                .further_results = {{{rows_of(x)}}},
                .kernel = [](auto in, auto out) { l2_normalize_forward(in[0], out[0].data, out[1].data); },
                .gradient =
                    [](const auto& in, const auto& out) {
                      return backward_kernel(in, {out[0], out[1]}, [](auto from, auto grads) {
                        l2_normalize_backward(from[0], from[1].data, from[2].data, grads[0].data);
                      });
                    },
                .profile = "L2 norm",
                .keeps_token_order = true,
                .plain_loop = true},
               {x});
}

}  // namespace vitrail::ops
