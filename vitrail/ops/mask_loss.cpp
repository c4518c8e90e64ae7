// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/mask_loss.h"

#include <algorithm>
#include <cmath>

#include "vitrail/autograd/variable.h"
#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/ops/dispatch.h"

namespace vitrail::ops {
namespace {

template <class T>
T sigmoid(T x) {
  const T small = std::exp(-std::abs(x));  // in (0, 1]
  return x >= T(0) ? T(1) / (T(1) + small) : small / (T(1) + small);
}

// The focal loss of a mask; gradient becomes its derivative.
template <class T>
double focal_row(const T* logits, const T* targets, const FocalOptions& options, T* gradient, int64_t pixels) {
  const T alpha = static_cast<T>(options.alpha), gamma = static_cast<T>(options.gamma);
  const T share = T(1) / static_cast<T>(pixels);
  double sum = 0;
  for (int64_t i = 0; i < pixels; ++i) {
    const T x = logits[i], t = targets[i], p = sigmoid(x);
    const T cross_entropy = std::max(x, T(0)) - x * t + std::log1p(std::exp(-std::abs(x)));
    const T weight = alpha * t + (1 - alpha) * (1 - t), missing = p * (1 - t) + (1 - p) * t;  // 1 − p_t
    const T lower = gamma == T(2) ? missing : gamma == T(0) ? T(0) : std::pow(missing, gamma - 1);
    const T factor = gamma == T(0) ? T(1) : lower * missing;  // (1 − p_t)^γ
    sum += static_cast<double>(weight * factor * cross_entropy);
    const T slope = p * (1 - p) * (1 - 2 * t);  // d(1 − p_t)/dx
    gradient[i] = share * weight * (factor * (p - t) + gamma * lower * slope * cross_entropy);
  }
  return sum / static_cast<double>(pixels);
}

template <class T>
double dice_row(const T* logits, const T* targets, T* gradient, int64_t pixels) {
  double both = 0, sum = 0;
  for (int64_t i = 0; i < pixels; ++i) {
    const T p = sigmoid(logits[i]);
    gradient[i] = p;
    both += static_cast<double>(p) * static_cast<double>(targets[i]);
    sum += static_cast<double>(p) + static_cast<double>(targets[i]);
  }
  const double numerator = 2 * both + 1, denominator = sum + 1;
  for (int64_t i = 0; i < pixels; ++i) {
    const double p = static_cast<double>(gradient[i]), t = static_cast<double>(targets[i]);
    gradient[i] = static_cast<T>((numerator - 2 * t * denominator) / (denominator * denominator) * p * (1 - p));
  }
  return 1 - numerator / denominator;
}

void check(const Tensor& logits, const Tensor& targets, const char* where) {
  const bool fits = logits.rank() == 3 && targets.rank() == 2 && targets.size(0) == logits.size(0) &&
                    targets.size(1) == logits.size(2) && logits.size(2) > 0;
  if (!fits) {
    throw Error(where, "logits [B, M, P] and targets [B, P]", str(logits.shape(), " and ", targets.shape()));
  }
}

// Multiplies the derivative of each mask's loss by the gradient of that loss.
Tensor scaled_rows(const Tensor& derivative, const Tensor& incoming, DType dtype) {
  const Tensor grad = prepared(incoming, dtype), result = Tensor::empty(derivative.shape(), dtype);
  const int64_t pixels = derivative.size(2);
  dispatch_compute(dtype, [&](auto tag) {
    using T = decltype(tag);
    for (int64_t r = 0; r < grad.numel(); ++r) {
      const T factor = grad.data<T>()[r];
      const T* const from = derivative.data<T>() + r * pixels;
      std::transform(from, from + pixels, result.data<T>() + r * pixels, [factor](T d) { return factor * d; });
    }
  });
  return result;
}

// row(logits, targets, gradient, pixels) is the loss of one mask, and sets its derivative.
template <class Row>
Tensor loss_per_mask(const Tensor& logits, const Tensor& targets, const char* name, Row row) {
  check(logits, targets, name);
  const DType dtype = compute_dtype(logits, name);
  const Tensor x = prepared(logits, dtype), t = prepared(targets, dtype);
  const int64_t masks = x.size(1), pixels = x.size(2);
  const Tensor derivative = Tensor::empty(x.shape(), dtype);
  Tensor loss = Tensor::empty({x.size(0), masks}, dtype);
  dispatch_compute(dtype, [&](auto tag) {
    using T = decltype(tag);
    parallel_for(0, x.size(0) * masks, 1, [&](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; ++r) {
        loss.data<T>()[r] = static_cast<T>(
            row(x.data<T>() + r * pixels, t.data<T>() + r / masks * pixels, derivative.data<T>() + r * pixels, pixels));
      }
    });
  });
  if (autograd::recording({logits})) {
    autograd::record(loss, name, {logits}, [derivative, dtype](const Tensor& incoming) {
      return std::vector<Tensor>{scaled_rows(derivative, incoming, dtype)};
    });
  }
  return loss;
}

}  // namespace

Tensor focal_loss(const Tensor& logits, const Tensor& targets, const FocalOptions& options) {
  const bool valid = options.alpha >= 0 && options.alpha <= 1 && (options.gamma == 0 || options.gamma >= 1);
  if (!valid) {
    throw Error("focal_loss", "alpha from 0 to 1, and gamma 0 or at least 1", str(options.alpha, ", ", options.gamma));
  }
  return loss_per_mask(logits, targets, "focal_loss",
                       [&](const auto* x, const auto* t, auto* gradient, int64_t pixels) {
                         return focal_row(x, t, options, gradient, pixels);
                       });
}

Tensor dice_loss(const Tensor& logits, const Tensor& targets) {
  return loss_per_mask(logits, targets, "dice_loss", [](const auto* x, const auto* t, auto* gradient, int64_t pixels) {
    return dice_row(x, t, gradient, pixels);
  });
}

}  // namespace vitrail::ops
