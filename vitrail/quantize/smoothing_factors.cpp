// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "vitrail/quantize/smoothing_factors_internal.h"

namespace vitrail::quantize {
namespace {

// The squared output error of GPTQ relative to rounding to nearest, which Δ_r²/12 stands for.  A rough value is enough:
// it only weighs the two terms of the error against each other.
constexpr double kGptqErrorRatio = 0.6;

class FactorSearch {
 public:
  FactorSearch(const InputSample& sample, const Tensor& weight)
      : sample_(sample),
        weight_(weight.data<float>()),
        out_(weight.size(0)),
        in_(weight.size(1)),
        log_factors_(static_cast<size_t>(in_)),
        factors_(static_cast<size_t>(in_)),
        input_squares_(static_cast<size_t>(in_)),
        weight_squares_(static_cast<size_t>(in_)),
        trainable_(static_cast<size_t>(in_), true) {
    initialize();
  }

  // Returns the factors of the iterate with the smallest error.
  std::vector<float> run() {
    constexpr int kIterations = 300;
    constexpr double kLearningRate = 0.02, kBeta1 = 0.9, kBeta2 = 0.999, kEpsilon = 1e-12;
    std::vector<double> m(log_factors_.size()), v(log_factors_.size()), best = log_factors_;
    double min_error = evaluate();
    for (int step = 1; step <= kIterations; ++step) {
      const std::vector<double> grad = gradient();
      for (size_t c = 0; c < log_factors_.size(); ++c) {
        m[c] = kBeta1 * m[c] + (1 - kBeta1) * grad[c];
        v[c] = kBeta2 * v[c] + (1 - kBeta2) * grad[c] * grad[c];
        const double m_hat = m[c] / (1 - std::pow(kBeta1, step)), v_hat = v[c] / (1 - std::pow(kBeta2, step));
        if (trainable_[c]) log_factors_[c] -= kLearningRate * m_hat / (std::sqrt(v_hat) + kEpsilon);
      }
      const double error = evaluate();
      if (error >= min_error) continue;
      min_error = error;
      best = log_factors_;
    }
    std::vector<float> result(best.size());
    for (size_t c = 0; c < best.size(); ++c) result[c] = static_cast<float>(std::exp(best[c]));
    return result;
  }

 private:
  // Starts at SmoothQuant's factors.
  void initialize() {
    std::vector<float> max_input(log_factors_.size()), max_weight(log_factors_.size());
    for (size_t i = 0; i < sample_.activations.size(); ++i) {
      max_input[i % in_] = std::max(max_input[i % in_], std::abs(sample_.activations[i]));
      input_squares_[i % in_] += double{sample_.centered[i]} * sample_.centered[i];
    }
    for (int64_t i = 0; i < out_ * in_; ++i) {
      max_weight[i % in_] = std::max(max_weight[i % in_], std::abs(weight_[i]));
      weight_squares_[i % in_] += double{weight_[i]} * weight_[i];
    }
    for (size_t c = 0; c < log_factors_.size(); ++c) {
      trainable_[c] = max_input[c] > 0 && max_weight[c] > 0;
      if (trainable_[c]) log_factors_[c] = 0.5 * std::log(max_input[c] / max_weight[c]);
    }
  }

  // Returns the error at log_factors_, and keeps its terms and their derivatives for gradient().
  double evaluate() {
    for (size_t c = 0; c < log_factors_.size(); ++c) factors_[c] = std::exp(log_factors_[c]);
    sum_input_squares_ = sum_weight_squares_ = 0;
    for (size_t c = 0; c < log_factors_.size(); ++c) {
      sum_input_squares_ += input_squares_[c] / (factors_[c] * factors_[c]);
      sum_weight_squares_ += weight_squares_[c] * (factors_[c] * factors_[c]);
    }
    token_scale_grad_.assign(log_factors_.size(), 0);
    row_scale_grad_.assign(log_factors_.size(), 0);
    sum_token_scales_ = sum_row_scales_ = 0;
    for (size_t t = 0; t < sample_.activations.size(); t += in_) add_token(sample_.activations.data() + t);
    for (int64_t r = 0; r < out_; ++r) add_weight_row(weight_ + r * in_);
    return expected_error();
  }

  double expected_error() const {
    return sum_token_scales_ * sum_weight_squares_ + sum_row_scales_ * sum_input_squares_;
  }

  // Adds Δ_t² of one token.  Only the channels with the extreme values contribute to its derivative.
  void add_token(const float* x) {
    double min = 0, max = 0;
    int64_t argmin = -1, argmax = -1;
    for (int64_t c = 0; c < in_; ++c) {
      const double value = x[c] / factors_[c];
      if (value > max) max = value, argmax = c;
      if (value < min) min = value, argmin = c;
    }
    const double factor = 1 / (255.0 * 255.0), range = max - min;
    sum_token_scales_ += factor * range * range;
    if (argmax >= 0) token_scale_grad_[argmax] -= factor * 2 * range * max;
    if (argmin >= 0) token_scale_grad_[argmin] += factor * 2 * range * min;
  }

  // Adds Δ_r² of one row of the weight.
  void add_weight_row(const float* w) {
    double max = 0;
    int64_t argmax = 0;
    for (int64_t c = 0; c < in_; ++c) {
      const double value = std::abs(w[c] * factors_[c]);
      if (value > max) max = value, argmax = c;
    }
    const double square = kGptqErrorRatio * max * max / (127.0 * 127.0);
    sum_row_scales_ += square;
    row_scale_grad_[argmax] += 2 * square;
  }

  // The derivative of log(error) with respect to the log factors, at the point of the last evaluate().
  std::vector<double> gradient() const {
    const double total = expected_error();
    std::vector<double> grad(log_factors_.size());
    for (size_t c = 0; c < log_factors_.size(); ++c) {
      const double square = factors_[c] * factors_[c];
      grad[c] = (token_scale_grad_[c] * sum_weight_squares_ + sum_token_scales_ * 2 * weight_squares_[c] * square +
                 row_scale_grad_[c] * sum_input_squares_ - sum_row_scales_ * 2 * input_squares_[c] / square) /
                total;
    }
    return grad;
  }

  const InputSample& sample_;
  const float* weight_;
  int64_t out_, in_;
  std::vector<double> log_factors_, factors_;
  std::vector<double> input_squares_, weight_squares_;  // per channel, without factors: Σ_t d_tc², Σ_r W_rc²
  std::vector<bool> trainable_;
  // Terms of the error, and the derivatives of the scales' sums with respect to the log factors.
  double sum_input_squares_ = 0, sum_weight_squares_ = 0;  // Σ_tc (d_tc / s_c)², Σ_rc (W_rc s_c)²
  double sum_token_scales_ = 0, sum_row_scales_ = 0;       // Σ_t Δ_t², kGptqErrorRatio · Σ_r Δ_r²
  std::vector<double> token_scale_grad_, row_scale_grad_;
};

}  // namespace

std::vector<float> smoothing_factors(const InputSample& sample, const Tensor& weight) {
  return FactorSearch(sample, weight).run();
}

}  // namespace vitrail::quantize
