// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "vitrail/kernels/rowwise/exponentials.h"
#include "vitrail/ops/loss_internal.h"

namespace vitrail::ops {
namespace {

Tensor argmax_of_rows(const Tensor& logits) {
  const Tensor values = logits.to(DType::f64).contiguous(), labels = Tensor::empty({logits.size(0)}, DType::i64);
  const int64_t cols = logits.size(1);
  for (int64_t r = 0; r < logits.size(0); ++r) {
    const double* const row = values.data<double>() + r * cols;
    labels.data<int64_t>()[r] = std::max_element(row, row + cols) - row;
  }
  return labels;
}

// The KL divergence Σ p (log p − log q) of one row, with p = softmax(teacher / T) and q = softmax(student / T).
// gradient becomes factor · (q − p); the derivative with respect to the student's logits is (q − p) / T.
template <class T>
double divergence_row(const T* student, const T* teacher, double temperature, double factor, T* gradient,
                      int64_t cols) {
  std::vector<T> s(student, student + cols), t(teacher, teacher + cols), p(static_cast<size_t>(cols));
  for (T& x : s) x /= static_cast<T>(temperature);
  for (T& x : t) x /= static_cast<T>(temperature);
  const auto q_row = kernels::exponentials(s.data(), gradient, cols);
  const auto p_row = kernels::exponentials(t.data(), p.data(), cols);
  const double q_shift = q_row.max + std::log(static_cast<double>(q_row.sum));
  const double p_shift = p_row.max + std::log(static_cast<double>(p_row.sum));
  double divergence = 0;
  for (int64_t c = 0; c < cols; ++c) {
    const double probability = p[c] / static_cast<double>(p_row.sum);
    // The limit of p log p is 0.
    if (probability > 0) divergence += probability * ((t[c] - p_shift) - (s[c] - q_shift));
    gradient[c] = static_cast<T>(factor * (gradient[c] / static_cast<double>(q_row.sum) - probability));
  }
  return divergence;
}

}  // namespace

Tensor distillation(const Tensor& student, const Tensor& teacher, const DistillationOptions& options) {
  check_logits(student, "distillation");
  if (!(teacher.shape() == student.shape())) {
    throw Error("distillation", str("the teacher's logits ", student.shape(), ", as the student's"),
                teacher.shape().to_string());
  }
  if (options.hard) return cross_entropy(student, argmax_of_rows(teacher));
  const double t = options.temperature;
  if (!(t > 0)) throw Error("distillation", "a temperature above 0", str(t));
  const DType dtype = compute_dtype(student, "distillation");
  const Tensor s = prepared(student, dtype), other = prepared(teacher, dtype);
  const Tensor gradient = Tensor::empty(s.shape(), dtype);
  const int64_t rows = s.size(0), cols = s.size(1);
  const double count = static_cast<double>(options.per_element ? rows * cols : rows);
  double sum = 0;
  dispatch_compute(dtype, [&](auto tag) {
    using T = decltype(tag);
    sum = sum_of_rows(rows, cols, [&](int64_t r) {
      return divergence_row(s.data<T>() + r * cols, other.data<T>() + r * cols, t, t / count,
                            gradient.data<T>() + r * cols, cols);
    });
  });
  return loss_of(t * t * sum / count, "distillation", student, gradient, dtype);
}

}  // namespace vitrail::ops
