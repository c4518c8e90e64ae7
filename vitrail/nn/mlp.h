// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/nn/dropout.h"
#include "vitrail/nn/layer_norm.h"
#include "vitrail/nn/linear.h"

namespace vitrail::nn {

struct MlpConfig {
  int64_t in_features = 0;
  std::optional<int64_t> hidden_features{};  // default: 4 × in_features
  std::optional<int64_t> out_features = {};  // default: in_features
  kernels::Activation activation = kernels::Activation::gelu;
  double dropout = 0;
  bool bias = true;
  std::optional<double> norm_eps = {};         // if set: a LayerNorm in front of fc1 ("norm")
  std::optional<double> hidden_norm_eps = {};  // if set: a LayerNorm in front of fc2 ("norm"); not with norm_eps
  bool sam_names = false;  // parameters lin1, lin2 instead of fc1, fc2, as Segment Anything's MLPBlock
  init::Scheme init = init::Scheme::torch;
};

// fc1 → activation → dropout → (norm) → fc2 → dropout.  x [..., in] → [..., out].  Source: timm's Mlp.
// Traced besides the modules: act (after the activation), norm.
class Mlp : public Module {
 public:
  Mlp(const MlpConfig& config, const ParamSource& params);
  Tensor forward(const Tensor& x) const;
  std::string type() const override { return "Mlp"; }
  void visit(Visitor& visitor) override;

 private:
  MlpConfig config_;
  std::optional<LayerNorm> norm_;  // in front of fc1 or of fc2
  Linear fc1_;
  Dropout drop1_;
  Linear fc2_;
  Dropout drop2_;
};

// An activation as PyTorch prints it: "GELU(approximate='none')".
std::string activation_text(kernels::Activation activation);

}  // namespace vitrail::nn
