// SPDX-License-Identifier: Apache-2.0
#pragma once
// The distribution of a layer's input over calibration images, and the scale that suits it.
#include <cstdint>
#include <vector>

#include "vitrail/tensor/affine_quantization.h"

namespace vitrail::quantize {

// A histogram of the input x [n, in] of a linear layer y = x Wᵀ.  An error e_c of channel c adds W_:c e_c to y, so that
// a value counts with its channel's importance ‖W_:c‖².
class ActivationHistogram {
 public:
  explicit ActivationHistogram(std::vector<float> importance);  // [in], not negative

  int64_t channels() const { return static_cast<int64_t>(importance_.size()); }
  // rows [count, in], finite.  weight: how often each counts.
  void add(const float* rows, int64_t count, float weight);

  // The quantisation with the least expected squared error of y, when errors of different values are independent: the
  // sum over x of importance times
  //   Δ² / 12            within the range [lo, hi], from rounding with the step Δ
  //   (x − bound)²       outside, from clipping
  // (Banner et al. 2019, "Post Training 4-bit Quantization of Convolutional Networks for Rapid-Deployment", eq. 3, on
  // the measured distribution).  i8: lo = −hi and zero point 0.  u8: lo ≤ 0 ≤ hi, each within the values seen.  The
  // scale is 1 if all values were 0.
  AffineQuantization quantization(DType dtype) const;

 private:
  void widen(float limit);

  std::vector<float> importance_;
  float limit_ = 0;           // the bins divide [−limit, limit)
  float min_ = 0, max_ = 0;   // the range of all values and 0
  std::vector<double> bins_;  // sums of importance
};

}  // namespace vitrail::quantize
