// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "vitrail/autograd/variable.h"
#include "vitrail/kernels/rowwise/exponentials.h"
#include "vitrail/ops/loss_internal.h"

namespace vitrail::ops {
namespace {

// The loss of one row.  With m the largest logit and S = Σ exp(x − m): −log softmax(x)_c = log S − (x_c − m), summed in
// f64.  gradient [C] becomes factor · (softmax(x) Σt − t); in between it has the exponentials.
template <class T>
double label_row(const T* x, int64_t label, double smoothing, double factor, T* gradient, int64_t cols) {
  const kernels::RowExponentials<T> row = kernels::exponentials(x, gradient, cols);
  const double log_sum = std::log(static_cast<double>(row.sum)), max = row.max;
  double loss = (1 - smoothing) * (log_sum - (x[label] - max));
  if (smoothing > 0) {
    double shifted = 0;
    for (int64_t c = 0; c < cols; ++c) shifted += x[c] - max;
    loss += smoothing * (log_sum - shifted / static_cast<double>(cols));
  }
  const T scale = static_cast<T>(factor / row.sum),
          off = static_cast<T>(factor * smoothing / static_cast<double>(cols));
  for (int64_t c = 0; c < cols; ++c) gradient[c] = gradient[c] * scale - off;
  gradient[label] -= static_cast<T>(factor * (1 - smoothing));
  return loss;
}

template <class T>
double soft_row(const T* x, const T* target, double smoothing, double factor, T* gradient, int64_t cols) {
  const kernels::RowExponentials<T> row = kernels::exponentials(x, gradient, cols);
  const double log_sum = std::log(static_cast<double>(row.sum)), max = row.max;
  const double off = smoothing / static_cast<double>(cols);
  double total = 0, weighted = 0;  // Σt and Σ t (x − m)
  for (int64_t c = 0; c < cols; ++c) {
    const double t = (1 - smoothing) * target[c] + off;
    total += t;
    weighted += t * (x[c] - max);
  }
  const T scale = static_cast<T>(factor * total / row.sum), keep = static_cast<T>(factor * (1 - smoothing));
  for (int64_t c = 0; c < cols; ++c) {
    gradient[c] = gradient[c] * scale - (keep * target[c] + static_cast<T>(factor * off));
  }
  return total * log_sum - weighted;
}

}  // namespace

Tensor cross_entropy(const Tensor& logits, const Tensor& targets, double label_smoothing) {
  check_smoothing(label_smoothing, "cross_entropy");
  const DType dtype = compute_dtype(logits, "cross_entropy");
  const Targets checked = checked_targets(logits, targets, dtype, "cross_entropy");
  const int64_t rows = logits.size(0), cols = logits.size(1);
  const Tensor x = prepared(logits, dtype), gradient = Tensor::empty(x.shape(), dtype);
  double sum = 0;
  dispatch_compute(dtype, [&](auto tag) {
    using T = decltype(tag);
    const double factor = 1 / static_cast<double>(rows);
    sum = sum_of_rows(rows, cols, [&](int64_t r) {
      const T* const from = x.data<T>() + r * cols;
      T* const to = gradient.data<T>() + r * cols;
      if (checked.labels.defined()) {
        return label_row(from, checked.labels.data<int64_t>()[r], label_smoothing, factor, to, cols);
      }
      return soft_row(from, checked.soft.data<T>() + r * cols, label_smoothing, factor, to, cols);
    });
  });
  return loss_of(sum / static_cast<double>(rows), "cross_entropy", logits, gradient, dtype);
}

}  // namespace vitrail::ops
