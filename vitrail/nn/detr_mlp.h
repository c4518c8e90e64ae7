// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/nn/linear.h"

namespace vitrail::nn {

// Three linear layers "layers.0", "layers.1", "layers.2" with ReLU between them.  x [..., in] → [..., out].
// Source: DETR's MLP (Carion et al. 2020), which Segment Anything's mask decoder has too.
class DetrMlp : public Module {
 public:
  DetrMlp(int64_t in, int64_t hidden, int64_t out, const ParamSource& params);
  Tensor forward(const Tensor& x) const;
  std::string type() const override { return "MLP"; }
  void visit(Visitor& visitor) override;

 private:
  ModuleList<Linear> layers_;
};

}  // namespace vitrail::nn
