// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/folded_batch_norm.h"

#include <cmath>

#include "vitrail/nn/init.h"

namespace vitrail::nn {

const Tensor& FoldedBatchNorm::scale(int64_t channels) {
  if (scale_) return *scale_;
  const Tensor gamma = norm_.get("weight", {channels}, init::ones()).to(DType::f32);
  const Tensor variance = norm_.get("running_var", {channels}, init::ones()).to(DType::f32);
  scale_.emplace();
  if (gamma.is_meta() || variance.is_meta()) return *scale_;
  *scale_ = Tensor::empty({channels});
  for (int64_t i = 0; i < channels; ++i) {
    const double deviation = std::sqrt(static_cast<double>(variance.contiguous().data<float>()[i]) + eps_);
    scale_->data<float>()[i] = static_cast<float>(static_cast<double>(gamma.contiguous().data<float>()[i]) / deviation);
  }
  return *scale_;
}

Tensor FoldedBatchNorm::get(const std::string& path, const Shape& shape, const Initializer& init) {
  const bool is_weight = path.ends_with(".weight");
  const int64_t channels = shape[is_weight ? channel_axis_ : 0];
  const Tensor factors = scale(channels);
  if (is_weight) {
    Tensor weight = convolution_.get("weight", shape, init);
    if (weight.is_meta() || !factors.defined()) return weight;
    weight = weight.to(DType::f32).clone();  // the file's memory stays as it is
    int64_t inner = 1;                       // elements of a channel behind each other
    for (int axis = channel_axis_ + 1; axis < shape.rank(); ++axis) inner *= shape[axis];
    for (int64_t i = 0; i < weight.numel(); ++i) weight.data<float>()[i] *= factors.data<float>()[i / inner % channels];
    return weight;
  }
  const Tensor beta = norm_.get("bias", shape, init::zeros()).to(DType::f32).contiguous();
  const Tensor mean = norm_.get("running_mean", shape, init::zeros()).to(DType::f32).contiguous();
  const Tensor bias = bias_ ? convolution_.get("bias", shape, init).to(DType::f32).contiguous() : Tensor::zeros(shape);
  if (beta.is_meta() || mean.is_meta() || bias.is_meta() || !factors.defined()) return beta;
  const Tensor result = Tensor::empty(shape);
  for (int64_t i = 0; i < channels; ++i) {
    result.data<float>()[i] =
        (bias.data<float>()[i] - mean.data<float>()[i]) * factors.data<float>()[i] + beta.data<float>()[i];
  }
  return result;
}

bool FoldedBatchNorm::has(const std::string& path) const {
  return path.ends_with(".weight") ? convolution_.has("weight") : norm_.has("bias");
}

}  // namespace vitrail::nn
