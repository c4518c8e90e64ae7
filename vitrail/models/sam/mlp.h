// SPDX-License-Identifier: Apache-2.0
#pragma once
// The MLP of Segment Anything's mask decoder (segment_anything/modeling/mask_decoder.py).
#include "vitrail/nn/linear.h"

namespace vitrail::models {

// Linear layers "layers.0", "layers.1", … with ReLU between them.
class SamMlp : public nn::Module {
 public:
  SamMlp(int64_t in, int64_t hidden, int64_t out, const ParamSource& params);
  Tensor forward(const Tensor& x) const;
  std::string type() const override { return "MLP"; }
  void visit(nn::Visitor& visitor) override;

 private:
  nn::ModuleList<nn::Linear> layers_;
};

}  // namespace vitrail::models
