// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/softmax.h"

#include "vitrail/autograd/variable.h"
#include "vitrail/base/parallel.h"
#include "vitrail/kernels/rowwise/scalar_rowwise_internal.h"
#include "vitrail/kernels/rowwise/softmax.h"
#include "vitrail/ops/custom_internal.h"
#include "vitrail/ops/dispatch_internal.h"

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

}  // namespace

Tensor softmax(const Tensor& x) {
  const int64_t cols = x.size(-1), rows = cols ? x.numel() / cols : 0;
  if (symbolic({&x})) {
    return recorded_custom("softmax", {x}, x.shape(), [=](const float* const* in, float* const* out) {
      kernels::softmax(in[0], out[0], rows, cols);
    });
  }
  const DType dtype = compute_dtype(x, "softmax");
  const Tensor xc = prepared(x, dtype), y = Tensor::empty(x.shape(), dtype);
  if (dtype == DType::f64) {
    kernels::scalar::softmax(xc.data<double>(), y.data<double>(), rows, cols);
  } else {
    kernels::softmax(xc.data<float>(), y.data<float>(), rows, cols);
  }
  Tensor result = y.to(x.dtype());
  if (autograd::recording({x})) {
    autograd::record(result, "softmax", {x}, [y, rows, cols](const Tensor& grad) {
      const Tensor g = prepared(grad, y.dtype()), grad_x = Tensor::empty(y.shape(), y.dtype());
      dispatch_compute(y.dtype(), [&](auto tag) {
        using T = decltype(tag);
        softmax_backward(y.data<T>(), g.data<T>(), grad_x.data<T>(), rows, cols);
      });
      return std::vector<Tensor>{grad_x};
    });
  }
  return result;
}

}  // namespace vitrail::ops
