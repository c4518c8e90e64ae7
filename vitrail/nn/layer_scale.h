// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/nn/module.h"

namespace vitrail::nn {

// LayerScale (Touvron et al. 2021): a learned factor per channel on a residual branch.  Parameter: gamma [dim].
// ops::residual_add applies it, in the same pass over memory as the addition.
class LayerScale : public Module {
 public:
  LayerScale(int64_t dim, double init_value, const ParamSource& params);
  const Tensor& gamma() const { return gamma_; }
  std::string type() const override { return "LayerScale"; }
  void visit(Visitor& visitor) override { visitor.parameter("gamma", gamma_); }

 private:
  Tensor gamma_;
};

}  // namespace vitrail::nn
