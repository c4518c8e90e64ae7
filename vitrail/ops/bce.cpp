// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "vitrail/ops/loss_internal.h"

namespace vitrail::ops {
namespace {

// −t log σ(x) − (1 − t) log(1 − σ(x)) = max(x, 0) − x t + log(1 + e^−|x|), with the derivative σ(x) − t.
template <class T>
double bce_element(T x, T t, T factor, T* gradient) {
  const T small = std::exp(-std::abs(x));  // in (0, 1]
  const T sigmoid = x >= T(0) ? T(1) / (T(1) + small) : small / (T(1) + small);
  *gradient = factor * (sigmoid - t);
  return static_cast<double>(std::max(x, T(0)) - x * t + std::log1p(small));
}

// The target of class c in row r, with label smoothing and threshold applied.
template <class T>
T target_of(const Targets& targets, const BceOptions& options, int64_t r, int64_t c, int64_t cols) {
  T target;
  if (targets.labels.defined()) {
    const double smoothed = options.label_smoothing / static_cast<double>(cols);
    target = static_cast<T>(c == targets.labels.data<int64_t>()[r] ? 1 - options.label_smoothing + smoothed : smoothed);
  } else {
    target = targets.soft.data<T>()[r * cols + c];
  }
  return options.threshold ? T(target > static_cast<T>(*options.threshold)) : target;
}

}  // namespace

Tensor bce_with_logits(const Tensor& logits, const Tensor& targets, const BceOptions& options) {
  check_smoothing(options.label_smoothing, "bce_with_logits");
  const DType dtype = compute_dtype(logits, "bce_with_logits");
  const Targets checked = checked_targets(logits, targets, dtype, "bce_with_logits");
  const int64_t rows = logits.size(0), cols = logits.size(1);
  const double count = static_cast<double>(options.sum_classes ? rows : rows * cols);
  const Tensor x = prepared(logits, dtype), gradient = Tensor::empty(x.shape(), dtype);
  double sum = 0;
  dispatch_compute(dtype, [&](auto tag) {
    using T = decltype(tag);
    sum = sum_of_rows(rows, cols, [&](int64_t r) {
      double row = 0;
      for (int64_t c = 0; c < cols; ++c) {
        const T target = target_of<T>(checked, options, r, c, cols);
        row += bce_element(x.data<T>()[r * cols + c], target, static_cast<T>(1 / count),
                           gradient.data<T>() + r * cols + c);
      }
      return row;
    });
  });
  return loss_of(sum / count, "bce_with_logits", logits, gradient, dtype);
}

}  // namespace vitrail::ops
