// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/resample_weights_internal.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "vitrail/base/error.h"
#include "vitrail/kernels/rowwise/resample.h"

namespace vitrail::image {
namespace {

using std::numbers::pi;

double box(double x) { return x > -0.5 && x <= 0.5 ? 1.0 : 0.0; }

double triangle(double x) {
  x = std::fabs(x);
  return x < 1.0 ? 1.0 - x : 0.0;
}

double sinc(double x) {
  if (x == 0.0) return 1.0;
  x *= pi;
  return std::sin(x) / x;
}

// The constants are in single precision, as in Pillow.
double hamming(double x) {
  x = std::fabs(x);
  if (x == 0.0) return 1.0;
  if (x >= 1.0) return 0.0;
  x *= pi;
  return std::sin(x) / x * (0.54f + 0.46f * std::cos(x));
}

// Keys' cubic convolution with a = −1/2, each piece in Horner's form.
double cubic(double x) {
  constexpr double a = -0.5;
  x = std::fabs(x);
  if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
  if (x < 2.0) return (((x - 5.0) * x + 8.0) * x - 4.0) * a;
  return 0.0;
}

double lanczos3(double x) { return x >= -3.0 && x < 3.0 ? sinc(x) * sinc(x / 3.0) : 0.0; }

struct Kernel {
  double (*at)(double);
  double support;  // distance from the centre beyond which the weight is zero
};

Kernel kernel_of(Filter filter) {
  switch (filter) {
    case Filter::nearest:
      break;  // nearest has no weights
    case Filter::box:
      return {box, 0.5};
    case Filter::bilinear:
      return {triangle, 1.0};
    case Filter::hamming:
      return {hamming, 1.0};
    case Filter::bicubic:
      return {cubic, 2.0};
    case Filter::lanczos:
      return {lanczos3, 3.0};
  }
  throw Error("resize", "a filter with weights", name_of(filter));
}

int32_t to_fixed(double weight) {
  const double scaled = weight * (1 << kernels::kResampleBits);
  return static_cast<int32_t>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
}

}  // namespace

double scale_of(const Axis& axis) {
  return static_cast<double>(static_cast<float>(axis.to - axis.from)) / static_cast<double>(axis.size);
}

ResampleWeights resample_weights(const Axis& axis, Filter filter) {
  const Kernel kernel = kernel_of(filter);
  const double scale = scale_of(axis);
  const double stretch = std::max(scale, 1.0);  // antialiasing: the filter widens if the image shrinks
  const double support = kernel.support * stretch;
  const double inverse = 1.0 / stretch;

  ResampleWeights result;
  const int64_t count = axis.end - axis.begin;
  result.taps = static_cast<int64_t>(std::ceil(support)) * 2 + 1;
  result.firsts.resize(count);
  result.counts.resize(count);
  result.weights.resize(count * result.taps);
  std::vector<double> exact(result.taps);
  for (int64_t i = 0; i < count; ++i) {
    const double center = axis.from + (static_cast<double>(axis.begin + i) + 0.5) * scale;
    const int64_t first = std::max<int64_t>(static_cast<int64_t>(center - support + 0.5), 0);
    const int64_t last = std::min(static_cast<int64_t>(center + support + 0.5), axis.source_size);
    double sum = 0;
    for (int64_t x = first; x < last; ++x) {
      sum += exact[x - first] = kernel.at((static_cast<double>(x) - center + 0.5) * inverse);
    }
    int32_t* weights = result.weights.data() + i * result.taps;
    for (int64_t x = 0; x < last - first; ++x) weights[x] = to_fixed(sum != 0.0 ? exact[x] / sum : exact[x]);
    result.firsts[i] = first;
    result.counts[i] = last - first;
  }
  return result;
}

}  // namespace vitrail::image
