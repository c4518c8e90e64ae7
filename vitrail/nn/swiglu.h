// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/nn/layer_norm.h"
#include "vitrail/nn/linear.h"

namespace vitrail::nn {

struct SwiGluConfig {
  int64_t in_features = 0;
  int64_t hidden_features = 0;  // width after the gate; see dinov2_swiglu_hidden()
  bool bias = true;
  std::optional<double> norm_eps = {};  // if set: a LayerNorm between the gate and fc2 ("norm"), as in EVA-02
  init::Scheme init = init::Scheme::torch;
};

// w3(silu(w1 x) · w2 x) (Shazeer 2020, "GLU variants improve Transformer", eq. 6).  w1 and w2 are one matrix
// [2·hidden, in], w1 first.
// Source: DINOv2's SwiGLUFFNFused (w12, w3), under timm's names: fc1.weight [2·hidden, in], fc1.bias, fc2.weight
// [in, hidden], fc2.bias; norm.* [hidden].
class SwiGlu : public Module {
 public:
  SwiGlu(const SwiGluConfig& config, const ParamSource& params);
  Tensor forward(const Tensor& x) const;
  std::string type() const override { return "SwiGLU"; }
  void visit(Visitor& visitor) override;

 private:
  Tensor gated_in_steps(const Tensor& both) const;

  Linear fc1_;
  std::optional<LayerNorm> norm_;
  Linear fc2_;
};

// DINOv2's width after the gate for the nominal width of an MLP: 8·⌈⌊2/3 · hidden⌋ / 8⌉ (4096 for 4 · 1536).
int64_t dinov2_swiglu_hidden(int64_t nominal_hidden);

}  // namespace vitrail::nn
