#include "vitrail/infer/whole_pixels.h"

#include <algorithm>
#include <cmath>

#include "vitrail/base/error.h"

namespace vitrail::infer {
namespace {

// The byte that normalisation makes nearest to zero: bytes less this have eight bits and a sign, and pixels' mean does
// not meet the rounding of the weights.
double middle_of(const image::PixelScale& scale) {
  return std::clamp(std::nearbyint(-scale.offset / scale.step), 0.0, 255.0);
}

// Rounds a filter [height, width] to bf16 so that what neighbours are off by adds up to little: each hands its error on
// to the next one to the right and below, as printers do with grey.  Neighbouring pixels are alike, so they would make
// much of errors that add up.
void round_as_neighbours(float* filter, int64_t height, int64_t width) {
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      float* const at = filter + y * width + x;
      const float rounded = static_cast<float>(BFloat16(*at)), error = *at - rounded;
      const bool right = x + 1 < width, below = y + 1 < height;
      *at = rounded;
      if (right) at[1] += below ? error / 2 : error;
      if (below) at[width] += right ? error / 2 : error;
    }
  }
}

}  // namespace

WholePixels::WholePixels(const Tensor& weight, const Tensor& bias, const std::vector<image::PixelScale>& scales)
    : original_(weight.storage()) {
  const int64_t width = weight.size(0), channels = weight.size(1), pixels = weight.size(2) * weight.size(3);
  const auto given = static_cast<int64_t>(scales.size());
  if (given != 1 && given != channels)
    throw Error("session", str("pixel scales of ", channels, " channels"), str(given));
  weight_ = Tensor::empty({width, channels * pixels});
  bias_ = bias.defined() ? bias.to(DType::f32).clone() : Tensor::zeros({width});
  factor_ = Tensor::empty({channels});
  offset_ = Tensor::empty({channels});
  const Tensor dense = weight.to(DType::f32).contiguous();
  for (int64_t c = 0; c < channels; ++c) {
    const image::PixelScale& scale = scales[given == 1 ? 0 : c];
    if (!(scale.step > 0)) throw Error("session", "a positive step from one pixel value to the next", str(scale.step));
    const double middle = middle_of(scale);
    factor_.data<float>()[c] = static_cast<float>(1 / scale.step);
    offset_.data<float>()[c] = static_cast<float>(-scale.offset / scale.step - middle);
    for (int64_t d = 0; d < width; ++d) {
      const float* const from = dense.data<float>() + (d * channels + c) * pixels;
      float* const to = weight_.data<float>() + (d * channels + c) * pixels;
      double sum = 0;
      for (int64_t i = 0; i < pixels; ++i) {
        to[i] = static_cast<float>(from[i] * scale.step);
        sum += from[i];
      }
      bias_.data<float>()[d] += static_cast<float>(sum * (scale.offset + middle * scale.step));
      round_as_neighbours(to, weight.size(2), weight.size(3));
    }
  }
  original_->release();
}

void WholePixels::rewrite(std::vector<ops::Operation>& operations) const {
  for (ops::Operation& op : operations) {
    if (op.kind == ops::OpKind::patchify) op.inputs = {op.inputs[0], factor_, offset_};
    if (op.kind == ops::OpKind::linear && op.inputs[1].storage() == original_)
      op.inputs = {op.inputs[0], weight_, bias_};
  }
}

}  // namespace vitrail::infer
