// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/loss.h"

#include "vitrail/autograd/variable.h"
#include "vitrail/ops/loss_internal.h"

namespace vitrail::ops {
namespace {

Tensor scaled(const Tensor& x, double factor) {
  Tensor result = Tensor::empty(x.shape(), x.dtype());
  dispatch_compute(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    for (int64_t i = 0; i < x.numel(); ++i) result.data<T>()[i] = x.data<T>()[i] * T(factor);
  });
  return result;
}

}  // namespace

void check_logits(const Tensor& logits, const char* where) {
  if (logits.rank() != 2 || logits.numel() == 0) {
    throw Error(where, "logits [B, C] of at least one row and class", logits.shape().to_string());
  }
}

void check_smoothing(double smoothing, const char* where) {
  if (!(smoothing >= 0 && smoothing < 1)) throw Error(where, "a label smoothing in [0, 1)", str(smoothing));
}

Targets checked_targets(const Tensor& logits, const Tensor& targets, DType dtype, const char* where,
                        std::optional<int64_t> ignored) {
  check_logits(logits, where);
  const int64_t rows = logits.size(0), cols = logits.size(1);
  if (is_floating(targets.dtype())) {
    if (!(targets.shape() == logits.shape())) {
      throw Error(where, str("a target distribution ", logits.shape(), ", as the logits"), targets.shape().to_string());
    }
    return {{}, prepared(targets, dtype)};
  }
  if (targets.dtype() != DType::i64 || !(targets.shape() == Shape{rows})) {
    throw Error(where, str("labels i64 [", rows, "] or a distribution ", logits.shape()),
                str(name_of(targets.dtype()), " ", targets.shape()));
  }
  const Tensor labels = targets.contiguous();
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t label = labels.data<int64_t>()[r];
    if ((label < 0 || label >= cols) && label != ignored) {
      throw Error(where, str("labels from 0 to ", cols - 1), str(label, " for sample ", r));
    }
  }
  return {labels, {}};
}

double sum_of_rows(int64_t rows, int64_t cols, const std::function<double(int64_t)>& row) {
  std::vector<double> terms(static_cast<size_t>(rows));
  const int64_t rows_per_task = 1 + 1024 / cols;  // 1024 elements take longer than waking a thread
  parallel_for(0, rows, rows_per_task, [&](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r) terms[r] = row(r);
  });
  double sum = 0;
  for (const double term : terms) sum += term;
  return sum;
}

Tensor loss_of(double value, const char* name, const Tensor& logits, const Tensor& gradient, DType dtype) {
  Tensor loss = Tensor::full({}, value, dtype);
  if (autograd::recording({logits})) {
    autograd::record(loss, name, {logits}, [gradient](const Tensor& incoming) {
      return std::vector<Tensor>{scaled(gradient, incoming.item<double>())};
    });
  }
  return loss;
}

Tensor weighted_sum(const std::vector<Tensor>& terms, const std::vector<double>& weights) {
  if (terms.empty() || terms.size() != weights.size()) {
    throw Error("weighted_sum", "a weight for each of at least one term",
                str(terms.size(), " terms and ", weights.size(), " weights"));
  }
  const DType dtype = compute_dtype(terms[0], "weighted_sum");
  double sum = 0;
  for (size_t i = 0; i < terms.size(); ++i) {
    if (terms[i].dtype() != dtype) throw Error("weighted_sum", name_of(dtype), name_of(terms[i].dtype()));
    sum += weights[i] * terms[i].item<double>();
  }
  Tensor result = Tensor::full({}, sum, dtype);
  if (autograd::recording(terms)) {
    std::vector<Shape> shapes;
    for (const Tensor& term : terms) shapes.push_back(term.shape());
    autograd::record(result, "weighted_sum", terms, [shapes, weights, dtype](const Tensor& incoming) {
      std::vector<Tensor> grads;
      for (size_t i = 0; i < shapes.size(); ++i) {
        grads.push_back(Tensor::full(shapes[i], weights[i] * incoming.item<double>(), dtype));
      }
      return grads;
    });
  }
  return result;
}

}  // namespace vitrail::ops
