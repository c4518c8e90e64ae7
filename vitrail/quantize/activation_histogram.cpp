// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "vitrail/quantize/activation_histogram_internal.h"

namespace vitrail::quantize {
namespace {

// Outliers of 100 times the usual values leave some 80 bins to those, and bounds of a range need no more.
constexpr int64_t kBins = 8192;

// Sums of weights w, of w x and of w x², over values x.
struct Sums {
  double weight = 0, value = 0, square = 0;

  double squared_distance(double bound) const { return square - 2 * bound * value + bound * bound * weight; }
};

Sums difference(const Sums& a, const Sums& b) { return {a.weight - b.weight, a.value - b.value, a.square - b.square}; }

// The expected squared error of ranges.
class RangeError {
 public:
  RangeError(const std::vector<double>& bins, double limit) : width_(2 * limit / kBins), limit_(limit) {
    for (int64_t i = 0; i < kBins; ++i) {
      const double value = (static_cast<double>(i) + 0.5) * width_ - limit_, weight = bins[i];
      const Sums& below = below_[i];
      below_[i + 1] = {below.weight + weight, below.value + weight * value, below.square + weight * value * value};
    }
  }

  double of(double lo, double hi, double step) const {
    const Sums &under = below(lo), above = difference(below_.back(), below(hi));
    const double within = below_.back().weight - under.weight - above.weight;
    return step * step / 12 * within + under.squared_distance(lo) + above.squared_distance(hi);
  }

 private:
  const Sums& below(double bound) const {
    const auto bin = static_cast<int64_t>((bound + limit_) / width_);
    return below_[std::clamp<int64_t>(bin, 0, kBins)];
  }

  double width_, limit_;
  std::vector<Sums> below_ = std::vector<Sums>(kBins + 1);  // values before the i-th bin
};

// Bounds to try: fractions of the largest value, down to 1/64 in steps of 2^(1/16).
constexpr int kCandidates = 97;
constexpr double kStepsPerOctave = 16;

std::array<double, kCandidates> candidates(double bound) {
  std::array<double, kCandidates> result{};
  for (int i = 0; i < kCandidates; ++i) result[i] = bound * std::exp2(-i / kStepsPerOctave);
  return result;
}

}  // namespace

ActivationHistogram::ActivationHistogram(std::vector<float> importance)
    : importance_(std::move(importance)), bins_(kBins) {}

// Merges pairs of bins until the range includes `limit`.
void ActivationHistogram::widen(float limit) {
  if (limit_ == 0) {
    limit_ = limit * 1.0001f;  // the last bin has no upper edge
    return;
  }
  for (; limit_ <= limit; limit_ *= 2) {
    std::vector<double> merged(kBins);
    for (int64_t i = 0; i < kBins; ++i) merged[kBins / 4 + i / 2] += bins_[i];
    bins_ = std::move(merged);
  }
}

void ActivationHistogram::add(const float* rows, int64_t count, float weight) {
  const auto in = static_cast<int64_t>(importance_.size());
  if (count == 0 || in == 0) return;
  const auto [min, max] = std::minmax_element(rows, rows + count * in);
  min_ = std::min(min_, *min);
  max_ = std::max(max_, *max);
  const float limit = std::max(-min_, max_);
  if (limit == 0) return;  // every range has 0 without an error
  if (limit >= limit_) widen(limit);
  const double bins_per_unit = kBins / (2.0 * limit_);
  for (int64_t row = 0; row < count; ++row) {
    const float* const x = rows + row * in;
    for (int64_t c = 0; c < in; ++c) {
      const auto bin = static_cast<int64_t>((double{x[c]} + limit_) * bins_per_unit);
      bins_[std::min(bin, kBins - 1)] += weight * importance_[c];
    }
  }
}

AffineQuantization ActivationHistogram::quantization(DType dtype) const {
  constexpr double kSteps = 255, kLargest = 127;
  AffineQuantization best{dtype, 1, 0};
  if (min_ == max_) return best;
  const RangeError error(bins_, limit_);
  double min_error = std::numeric_limits<double>::infinity();
  const auto consider = [&](double lo, double hi, double step) {
    const double candidate = error.of(lo, hi, step);
    if (candidate >= min_error) return;
    min_error = candidate;
    best.scale = static_cast<float>(step);
    best.zero_point = dtype == DType::u8 ? static_cast<int32_t>(std::lround(-lo / step)) : 0;
  };
  if (dtype == DType::i8) {
    for (const double bound : candidates(std::max(-min_, max_))) consider(-bound, bound, bound / kLargest);
    return best;
  }
  for (const double lo : candidates(min_)) {
    for (const double hi : candidates(max_)) consider(lo, hi, (hi - lo) / kSteps);
  }
  return best;
}

}  // namespace vitrail::quantize
