// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <utility>

#include "vitrail/autograd/variable.h"
#include "vitrail/base/error.h"
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

// Σ_r w_label, or B for distributions.  weights: null for 1
template <class T>
double total_weight(const Targets& targets, const T* weights, int64_t rows, std::optional<int64_t> ignored) {
  if (!targets.labels.defined()) return static_cast<double>(rows);
  double total = 0;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t label = targets.labels.data<int64_t>()[r];
    if (label != ignored) total += weights ? static_cast<double>(weights[label]) : 1.0;
  }
  return total;
}

// The distributions w_c t_c of smoothed targets, whose cross-entropy is the weighted one; 0 for ignored rows.
template <class T>
Tensor weighted_targets(const Targets& targets, const T* weights, double smoothing, int64_t rows, int64_t cols,
                        DType dtype, std::optional<int64_t> ignored) {
  Tensor result = Tensor::zeros({rows, cols}, dtype);
  const double off = smoothing / static_cast<double>(cols);
  for (int64_t r = 0; r < rows; ++r) {
    if (targets.labels.defined() && targets.labels.data<int64_t>()[r] == ignored) continue;
    for (int64_t c = 0; c < cols; ++c) {
      const T t =
          targets.labels.defined() ? T(targets.labels.data<int64_t>()[r] == c) : targets.soft.data<T>()[r * cols + c];
      result.data<T>()[r * cols + c] = static_cast<T>(weights[c] * ((1 - smoothing) * t + off));
    }
  }
  return result;
}

// The targets and the divisor of the sum over rows.
struct WeightedRows {
  Targets targets;
  double divisor;
};

WeightedRows weighted_rows(const Tensor& logits, const Targets& targets, double smoothing, const Tensor& class_weights,
                           DType dtype, std::optional<int64_t> ignored) {
  const int64_t rows = logits.size(0), cols = logits.size(1);
  if (!(class_weights.shape() == Shape{cols}))
    throw Error("cross_entropy", str("class weights [", cols, "]"), str(class_weights.shape()));
  const Tensor weights = prepared(class_weights, dtype);
  WeightedRows result{};
  dispatch_compute(dtype, [&](auto tag) {
    using T = decltype(tag);
    const T* const values = weights.data<T>();
    result.divisor = total_weight(targets, values, rows, ignored);
    result.targets.soft = weighted_targets(targets, values, smoothing, rows, cols, dtype, ignored);
  });
  return result;
}

}  // namespace

Tensor cross_entropy(const Tensor& logits, const Tensor& given, double label_smoothing, const Tensor& class_weights,
                     std::optional<int64_t> ignored) {
  check_smoothing(label_smoothing, "cross_entropy");
  const DType dtype = compute_dtype(logits, "cross_entropy");
  Targets targets = checked_targets(logits, given, dtype, "cross_entropy", ignored);
  const int64_t rows = logits.size(0), cols = logits.size(1);
  double divisor = total_weight<float>(targets, nullptr, rows, ignored);
  if (class_weights.defined()) {
    WeightedRows weighted = weighted_rows(logits, targets, label_smoothing, class_weights, dtype, ignored);
    targets = std::move(weighted.targets), divisor = weighted.divisor;
    label_smoothing = 0;  // it is in the weighted targets
  }
  const Tensor x = prepared(logits, dtype), gradient = Tensor::empty(x.shape(), dtype);
  double sum = 0;
  dispatch_compute(dtype, [&](auto tag) {
    using T = decltype(tag);
    const double factor = divisor > 0 ? 1 / divisor : 0;
    sum = sum_of_rows(rows, cols, [&](int64_t r) {
      const T* const from = x.data<T>() + r * cols;
      T* const to = gradient.data<T>() + r * cols;
      if (targets.labels.defined()) {
        if (targets.labels.data<int64_t>()[r] == ignored) return std::fill(to, to + cols, T(0)), 0.0;
        return label_row(from, targets.labels.data<int64_t>()[r], label_smoothing, factor, to, cols);
      }
      return soft_row(from, targets.soft.data<T>() + r * cols, label_smoothing, factor, to, cols);
    });
  });
  return loss_of(divisor > 0 ? sum / divisor : 0, "cross_entropy", logits, gradient, dtype);
}

}  // namespace vitrail::ops
