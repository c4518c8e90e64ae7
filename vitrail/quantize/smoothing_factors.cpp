// SPDX-License-Identifier: Apache-2.0
#include "vitrail/quantize/smoothing_factors.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace vitrail::quantize {
namespace {

// What rounding together (rounding.h) leaves of the squared error that rounding each weight by itself would make;
// a quarter and twice of it gave the same logits.
constexpr double kRoundedTogether = 0.6;

class Search {
 public:
  Search(const InputRows& rows, const Tensor& weight)
      : rows_(rows),
        weight_(weight.data<float>()),
        out_(weight.size(0)),
        in_(weight.size(1)),
        logs_(static_cast<size_t>(in_)),
        divisors_(static_cast<size_t>(in_)),
        row_squares_(static_cast<size_t>(in_)),
        column_squares_(static_cast<size_t>(in_)),
        moves_(static_cast<size_t>(in_), true) {
    start();
  }

  std::vector<float> run() {
    constexpr int kSteps = 300;
    constexpr double kRate = 0.02, kMean = 0.9, kSquare = 0.999;
    std::vector<double> mean(logs_.size()), square(logs_.size()), best = logs_;
    double least = expected_error();
    for (int step = 1; step <= kSteps; ++step) {
      const std::vector<double> slope = gradient();
      for (size_t c = 0; c < logs_.size(); ++c) {
        mean[c] = kMean * mean[c] + (1 - kMean) * slope[c];
        square[c] = kSquare * square[c] + (1 - kSquare) * slope[c] * slope[c];
        const double m = mean[c] / (1 - std::pow(kMean, step)), v = square[c] / (1 - std::pow(kSquare, step));
        if (moves_[c]) logs_[c] -= kRate * m / (std::sqrt(v) + 1e-12);
      }
      const double error = expected_error();
      if (error >= least) continue;
      least = error;
      best = logs_;
    }
    std::vector<float> result(best.size());
    for (size_t c = 0; c < best.size(); ++c) result[c] = static_cast<float>(std::exp(best[c]));
    return result;
  }

 private:
  // SmoothQuant's divisors.
  void start() {
    std::vector<float> most_in(logs_.size()), most_weight(logs_.size());
    for (size_t i = 0; i < rows_.values.size(); ++i) {
      most_in[i % in_] = std::max(most_in[i % in_], std::abs(rows_.values[i]));
      row_squares_[i % in_] += double{rows_.apart[i]} * rows_.apart[i];
    }
    for (int64_t i = 0; i < out_ * in_; ++i) {
      most_weight[i % in_] = std::max(most_weight[i % in_], std::abs(weight_[i]));
      column_squares_[i % in_] += double{weight_[i]} * weight_[i];
    }
    for (size_t c = 0; c < logs_.size(); ++c) {
      moves_[c] = most_in[c] > 0 && most_weight[c] > 0;
      if (moves_[c]) logs_[c] = 0.5 * std::log(most_in[c] / most_weight[c]);
    }
  }

  // Sets the parts that the error's gradient is made of.
  double expected_error() {
    for (size_t c = 0; c < logs_.size(); ++c) divisors_[c] = std::exp(logs_[c]);
    inputs_squares_ = weights_squares_ = 0;
    for (size_t c = 0; c < logs_.size(); ++c) {
      inputs_squares_ += row_squares_[c] / (divisors_[c] * divisors_[c]);
      weights_squares_ += column_squares_[c] * (divisors_[c] * divisors_[c]);
    }
    input_slope_.assign(logs_.size(), 0);
    weight_slope_.assign(logs_.size(), 0);
    input_steps_ = weight_steps_ = 0;
    for (size_t t = 0; t < rows_.values.size(); t += in_) add_input(rows_.values.data() + t);
    for (int64_t r = 0; r < out_; ++r) add_weight(weight_ + r * in_);
    return input_steps_ * weights_squares_ + weight_steps_ * inputs_squares_;
  }

  // One token's step, squared; it changes with the channels of the largest and the smallest number alone.
  void add_input(const float* x) {
    double least = 0, most = 0;
    int64_t at_least = -1, at_most = -1;
    for (int64_t c = 0; c < in_; ++c) {
      const double value = x[c] / divisors_[c];
      if (value > most) most = value, at_most = c;
      if (value < least) least = value, at_least = c;
    }
    const double factor = 1 / (255.0 * 255.0), range = most - least;
    input_steps_ += factor * range * range;
    if (at_most >= 0) input_slope_[at_most] -= factor * 2 * range * most;
    if (at_least >= 0) input_slope_[at_least] += factor * 2 * range * least;
  }
  void add_weight(const float* w) {
    double most = 0;
    int64_t at = 0;
    for (int64_t c = 0; c < in_; ++c) {
      const double value = std::abs(w[c] * divisors_[c]);
      if (value > most) most = value, at = c;
    }
    const double square = kRoundedTogether * most * most / (127.0 * 127.0);
    weight_steps_ += square;
    weight_slope_[at] += 2 * square;
  }

  // By the logarithms of the divisors.
  std::vector<double> gradient() const {
    const double total = input_steps_ * weights_squares_ + weight_steps_ * inputs_squares_;
    std::vector<double> slope(logs_.size());
    for (size_t c = 0; c < logs_.size(); ++c) {
      const double square = divisors_[c] * divisors_[c];
      slope[c] = (input_slope_[c] * weights_squares_ + input_steps_ * 2 * column_squares_[c] * square +
                  weight_slope_[c] * inputs_squares_ - weight_steps_ * 2 * row_squares_[c] / square) /
                 total;
    }
    return slope;
  }

  const InputRows& rows_;
  const float* weight_;
  int64_t out_, in_;
  std::vector<double> logs_, divisors_, row_squares_, column_squares_, input_slope_, weight_slope_;
  std::vector<bool> moves_;
  double inputs_squares_ = 0, weights_squares_ = 0, input_steps_ = 0, weight_steps_ = 0;
};

}  // namespace

std::vector<float> smoothing_factors(const InputRows& rows, const Tensor& weight) { return Search(rows, weight).run(); }

}  // namespace vitrail::quantize
