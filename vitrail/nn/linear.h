// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/kernels/rowwise/activation.h"
#include "vitrail/nn/init.h"
#include "vitrail/nn/module.h"

namespace vitrail::nn {

// y = x Wᵀ + b.  Parameters: weight [out, in], bias [out] unless bias is false.  x [..., in] → [..., out].
// Source: torch.nn.Linear; its initialisation is the default.
class Linear : public Module {
 public:
  Linear(int64_t in_features, int64_t out_features, bool bias, const ParamSource& params);
  Linear(int64_t in_features, int64_t out_features, bool bias, const ParamSource& params, const init::LinearInit& init);

  // The activation is fused into the layer.  A trace gets the value before it.
  Tensor forward(const Tensor& x, kernels::Activation activation = kernels::Activation::none) const;
  // The same with another bias [out], unless it is undefined.
  Tensor forward_with_bias(const Tensor& x, const Tensor& bias) const;

  std::string type() const override { return "Linear"; }
  std::string extra() const override;
  void visit(Visitor& visitor) override;
  int64_t in_features() const { return weight_.size(1); }
  int64_t out_features() const { return weight_.size(0); }
  const Tensor& weight() const { return weight_; }
  const Tensor& bias() const { return bias_; }  // undefined without one

 private:
  Tensor weight_, bias_;
};

}  // namespace vitrail::nn
