// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/nn/module.h"

namespace extending {

// RMSNorm over the last axis: rms_norm.h.  x [..., features].  Parameter: weight (γ, ones) [features].
class RmsNorm : public vitrail::nn::Module {
 public:
  RmsNorm(int64_t features, double eps, const vitrail::ParamSource& params);
  vitrail::Tensor forward(const vitrail::Tensor& x) const;
  std::string type() const override { return "RMSNorm"; }
  std::string extra() const override;
  void visit(vitrail::nn::Visitor& visitor) override;

 private:
  vitrail::Tensor weight_;
  double eps_;
};

}  // namespace extending
