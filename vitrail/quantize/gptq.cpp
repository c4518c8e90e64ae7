// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "vitrail/base/cholesky_internal.h"
#include "vitrail/base/parallel.h"
#include "vitrail/kernels/gemm/weight_quantization_internal.h"
#include "vitrail/quantize/gptq_internal.h"

namespace vitrail::quantize {
namespace {

// Damping relative to the mean of the diagonal (GPTQ's percdamp).  The output Hessian is estimated from few gradients
// and has a low rank, so it needs more than the input Hessian.
constexpr double kInputDamping = 0.003, kOutputDamping = 0.5;

// A Hessian's Cholesky factor in act-order.  Channels are rounded from the last position to the first, so that those
// with the largest diagonal come first, while all others can still compensate their error.
struct ActOrderFactor {
  std::vector<int64_t> channels;  // the channel at each position, by ascending diagonal
  // L [n, n], row-major and lower triangular, with L Lᵀ = H.  An error e costs eᵀ H e = |Lᵀ e|², and element i of Lᵀ e
  // depends only on e_i and on the errors of later positions, which are known when i is rounded.
  std::vector<double> factor;
};

ActOrderFactor factorize(const Tensor& hessian, double damping) {
  const int64_t n = hessian.size(0);
  const float* const h = hessian.data<float>();
  ActOrderFactor result{std::vector<int64_t>(static_cast<size_t>(n)), std::vector<double>(static_cast<size_t>(n * n))};
  std::iota(result.channels.begin(), result.channels.end(), 0);
  std::stable_sort(result.channels.begin(), result.channels.end(),
                   [&](int64_t a, int64_t b) { return h[a * n + a] < h[b * n + b]; });
  double mean_diagonal = 0;
  for (int64_t i = 0; i < n; ++i) mean_diagonal += h[i * n + i] / static_cast<double>(n);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t k = 0; k < n; ++k) result.factor[i * n + k] = h[result.channels[i] * n + result.channels[k]];
    result.factor[i * n + i] += damping * mean_diagonal + 1e-30;  // the constant keeps a Hessian of zeros definite
  }
  result.factor = cholesky(std::move(result.factor), n);
  return result;
}

// Rounds rows of one layer: each value is the nearest to the one that makes its element of Lᵀ e zero.
class RowRounder {
 public:
  explicit RowRounder(const ActOrderFactor& inputs)
      : max_pair_(kernels::max_int8_pair()),
        inputs_(inputs),
        propagated_(inputs.channels.size()),
        values_(inputs.channels.size()) {}

  // Returns the scale with the smallest error; 0 for a row of zeros.  A grid search below the scale of rounding to
  // nearest: clipping the largest weights lets all others have a finer scale.
  double best_scale(const float* row) {
    constexpr float kClipRatios[] = {1.0f, 0.93f, 0.86f, 0.79f, 0.72f, 0.65f, 0.58f};
    const float max_scale = kernels::quantize_weight_row(row, static_cast<int64_t>(values_.size()), values_.data());
    double best = 0, min_error = std::numeric_limits<double>::infinity();
    for (const float ratio : kClipRatios) {
      const double error = max_scale > 0 ? quantize(row, ratio * max_scale) : 0;
      if (error >= min_error) continue;
      min_error = error;
      best = ratio * max_scale;
    }
    return best;
  }

  // target [in] → quantized [in] = scale · values.
  void round(const float* target, double scale, float* quantized) {
    if (scale > 0) quantize(target, scale);
    for (size_t c = 0; c < values_.size(); ++c) {
      quantized[c] = static_cast<float>(scale) * static_cast<float>(values_[c]);
    }
  }

 private:
  // Sets values_ and returns |Lᵀ e|².
  double quantize(const float* row, double scale) {
    const auto n = static_cast<int64_t>(values_.size());
    std::fill(propagated_.begin(), propagated_.end(), 0.0);
    std::fill(values_.begin(), values_.end(), int8_t{0});
    double cost = 0;
    for (int64_t i = n - 1; i >= 0; --i) {
      const double* const l = inputs_.factor.data() + i * n;
      const int64_t channel = inputs_.channels[i];
      const double target = row[channel] + propagated_[i] / l[i];
      const double value = std::clamp(std::nearbyint(target / scale), min_value(channel), max_value(channel));
      const double residual = l[i] * (target - value * scale), error = row[channel] - value * scale;
      cost += residual * residual;
      for (int64_t k = 0; k < i; ++k) propagated_[k] += l[k] * error;
      values_[channel] = static_cast<int8_t>(value);
    }
    return cost;
  }

  // The range of a channel's value, given the value that is paired with it (0 and 1, 2 and 3, ...).
  double max_value(int64_t channel) const {
    return std::min(kernels::kMaxInt8, max_pair_ - std::max(pair_value(channel), 0));
  }
  double min_value(int64_t channel) const {
    return -std::min(kernels::kMaxInt8, max_pair_ + std::min(pair_value(channel), 0));
  }
  int pair_value(int64_t channel) const {  // 0 while it is not yet known
    const int64_t other = channel ^ 1;
    return other < std::ssize(values_) ? values_[other] : 0;
  }

  int max_pair_;
  const ActOrderFactor& inputs_;
  std::vector<double> propagated_;  // Σ_{k > i} L_ki e_k of position i
  std::vector<int8_t> values_;
};

// Without a Hessian of the outputs, each row is rounded by itself.
void round_rows(const Tensor& weight, const ActOrderFactor& inputs) {
  const int64_t in = weight.size(1);
  parallel_for(0, weight.size(0), 1, [&](int64_t first, int64_t last) {
    RowRounder rounder(inputs);
    std::vector<float> target(static_cast<size_t>(in));
    for (int64_t r = first; r < last; ++r) {
      float* const row = weight.data<float>() + r * in;
      std::copy_n(row, in, target.begin());
      rounder.round(target.data(), rounder.best_scale(row), row);
    }
  });
}

std::vector<double> best_scales(const Tensor& weight, const ActOrderFactor& inputs) {
  const int64_t in = weight.size(1);
  std::vector<double> scales(static_cast<size_t>(weight.size(0)));
  parallel_for(0, weight.size(0), 1, [&](int64_t first, int64_t last) {
    RowRounder rounder(inputs);
    for (int64_t r = first; r < last; ++r) scales[r] = rounder.best_scale(weight.data<float>() + r * in);
  });
  return scales;
}

}  // namespace

void gptq_round_weight(const Tensor& weight, const Tensor& input_hessian, const Tensor& output_hessian) {
  const ActOrderFactor inputs = factorize(input_hessian, kInputDamping);
  if (!output_hessian.defined()) return round_rows(weight, inputs);
  const ActOrderFactor outputs = factorize(output_hessian, kOutputDamping);
  const std::vector<double> scales = best_scales(weight, inputs);
  const int64_t out = weight.size(0), in = weight.size(1);
  RowRounder rounder(inputs);
  std::vector<float> errors(static_cast<size_t>(out * in));  // rows of E in act-order
  std::vector<float> target(static_cast<size_t>(in));
  for (int64_t i = out - 1; i >= 0; --i) {
    float* const row = weight.data<float>() + outputs.channels[i] * in;
    // The row plus what compensates the errors of the rows before it: row i of Lᵀ E is 0 for this target.
    std::copy_n(row, in, target.begin());
    for (int64_t k = i + 1; k < out; ++k) {
      const auto ratio = static_cast<float>(outputs.factor[k * out + i] / outputs.factor[i * out + i]);
      const float* const error = errors.data() + k * in;
      for (int64_t c = 0; c < in; ++c) target[c] += ratio * error[c];
    }
    float* const error = errors.data() + i * in;
    std::copy_n(row, in, error);
    rounder.round(target.data(), scales[outputs.channels[i]], row);
    for (int64_t c = 0; c < in; ++c) error[c] -= row[c];
  }
}

}  // namespace vitrail::quantize
