// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>

#include "vitrail/kernels/rowwise/activation.h"
#include "vitrail/nn/dropout.h"
#include "vitrail/nn/init.h"
#include "vitrail/nn/module.h"

namespace vitrail::nn {

// The low-rank part of a linear layer, with A [rank, in] and B [out, rank]: dropout(x) Aᵀ (B ⊙ scale)ᵀ.
// Source: LoRA (Hu et al. 2021, arXiv 2106.09685, section 4.1).
struct LowRank {
  Tensor a, b;
  Tensor scale;  // a constant [1], or [out, rank] where some elements of B remain 0
  Dropout dropout;
};

// y = x Wᵀ + b, plus a low-rank part if there is one.  Parameters: weight [out, in], bias [out] unless bias is false,
// lora_A.weight and lora_B.weight of a low-rank part.  x [..., in] → [..., out].
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

  // Throws Error for other shapes than the layer's.
  void set_low_rank(LowRank part);

 private:
  Tensor apply(const Tensor& x, const Tensor& bias) const;

  Tensor weight_, bias_;
  std::optional<LowRank> low_rank_;
};

}  // namespace vitrail::nn
