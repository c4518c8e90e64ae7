// SPDX-License-Identifier: Apache-2.0
#pragma once
// A convolution and the batch normalisation behind it as one convolution, in eval mode.
#include <optional>

#include "vitrail/tensor/param_source.h"

namespace vitrail::nn {

// Provides the weight [out, …] and the bias of a convolution, which contain the batch normalisation (Ioffe &
// Szegedy 2015): weight · γ / √(var + ε), and (bias − mean) · γ / √(var + ε) + β.
//
//   FoldedBatchNorm folded(params.child("conv"), params.child("bn"), false);
//   Conv2d conv({…}, ParamSource(folded, params.child("conv").path()));
class FoldedBatchNorm : public ParamProvider {
 public:
  // norm: has weight, bias, running_mean and running_var; its num_batches_tracked is taken too.  bias: whether the
  // convolution has one.  channel_axis: that of the weight's output channels; 1 for a transposed convolution.
  FoldedBatchNorm(ParamSource convolution, ParamSource norm, bool bias, double eps = 1e-5, int channel_axis = 0)
      : convolution_(std::move(convolution)),
        norm_(std::move(norm)),
        bias_(bias),
        eps_(eps),
        channel_axis_(channel_axis) {}
  Tensor get(const std::string& path, const Shape& shape, const Initializer& init) override;
  bool has(const std::string& path) const override;
  void finish() override {}

 private:
  const Tensor& scale(int64_t channels);  // γ / √(var + ε), undefined for a missing key

  ParamSource convolution_, norm_;
  bool bias_;
  double eps_;
  int channel_axis_;
  std::optional<Tensor> scale_;
};

}  // namespace vitrail::nn
