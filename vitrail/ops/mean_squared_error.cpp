// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/mean_squared_error.h"

#include <algorithm>

#include "vitrail/ops/loss_internal.h"
#include "vitrail/ops/operation.h"

namespace vitrail::ops {
namespace {

constexpr int64_t kChunk = 4096;  // elements that are summed by one thread

template <class T>
double squared_distance(const T* a, const T* b, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double difference = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    sum += difference * difference;
  }
  return sum;
}

template <class T>
void squared_error_forward(const View<const T>& a, const T* b, T* loss) {
  const int64_t count = a.tensor->numel(), chunks = (count + kChunk - 1) / kChunk;
  const double sum = ops::sum_of_rows(chunks, kChunk, [&](int64_t chunk) {
    const int64_t first = chunk * kChunk;
    return squared_distance(a.data + first, b + first, std::min(kChunk, count - first));
  });
  *loss = static_cast<T>(sum / static_cast<double>(count));
}

template <class T>
void squared_error_backward(T grad, const View<const T>& a, const T* b, T* grad_a, T* grad_b) {
  const int64_t count = a.tensor->numel();
  const T factor = grad * T(2) / static_cast<T>(count);
  parallel_for(0, count, kChunk, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      grad_a[i] = factor * (a.data[i] - b[i]);
      grad_b[i] = -grad_a[i];
    }
  });
}

}  // namespace

Tensor mean_squared_error(const Tensor& a, const Tensor& b) {
  if (!(a.shape() == b.shape()) || a.numel() == 0) {
    throw Error("mean_squared_error", "two tensors of one shape with elements", str(a.shape(), " and ", b.shape()));
  }
  return apply({.name = "mean_squared_error",
                .shape = {},
                .kernel = [](auto in, auto out) { squared_error_forward(in[0], in[1].data, out[0].data); },
                .gradient =
                    [](const auto& in, const auto&) {
                      return backward_kernel(in, {in[0], in[1]}, [](auto from, auto grads) {
                        squared_error_backward(from[0].data[0], from[1], from[2].data, grads[0].data, grads[1].data);
                      });
                    },
                .profile = "loss",
                .plain_loop = true},
               {a, b});
}

}  // namespace vitrail::ops
