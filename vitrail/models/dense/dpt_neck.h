// SPDX-License-Identifier: Apache-2.0
#pragma once
// The neck of dense prediction transformers (Ranftl et al. 2021, "Vision Transformers for Dense Prediction"): maps of
// several blocks of a Vision Transformer are brought to several resolutions and fused from the coarsest to the finest.
// Maps are [B, h, w, C].  Parameters have the names of transformers.
#include <optional>
#include <vector>

#include "vitrail/models/dense/config.h"
#include "vitrail/nn/convolution.h"
#include "vitrail/nn/linear.h"

namespace vitrail::models {

// projection, then resize: a transposed convolution, a strided one, or nothing.
class DptReassembleLayer : public nn::Module {
 public:
  DptReassembleLayer(int64_t in, int64_t out, double factor, const ParamSource& params);
  Tensor forward(const Tensor& x) const;
  std::string type() const override { return "ReassembleLayer"; }
  void visit(nn::Visitor& visitor) override;

 private:
  nn::Conv2d projection_;
  std::optional<nn::ConvTranspose2d> enlarge_;
  std::optional<nn::Conv2d> reduce_;
};

// x + convolution2(relu(convolution1(relu(x)))).  The weights of convolutions with a batch normalisation contain it.
class DptResidualLayer : public nn::Module {
 public:
  DptResidualLayer(const DptNeckConfig& config, const ParamSource& params);
  Tensor forward(const Tensor& x) const;
  std::string type() const override { return "PreActResidualLayer"; }
  void visit(nn::Visitor& visitor) override;

 private:
  nn::Conv2d convolution1_, convolution2_;
};

// Adds a finer map to what is fused so far, and enlarges the sum to `size`.
class DptFusionLayer : public nn::Module {
 public:
  // first: nothing is fused yet, and there is no residual_layer1.
  DptFusionLayer(const DptNeckConfig& config, bool first, const ParamSource& params);
  Tensor forward(const Tensor& fused, const Tensor& map, std::array<int64_t, 2> size) const;
  std::string type() const override { return "FeatureFusionLayer"; }
  void visit(nn::Visitor& visitor) override;

 private:
  nn::Conv2d projection_;
  std::optional<DptResidualLayer> residual_layer1_;
  DptResidualLayer residual_layer2_;
};

class DptNeck : public nn::Module {
 public:
  DptNeck(const DptNeckConfig& config, const ParamSource& params);
  // Tokens of the backbone, the class token first, [B, 1 + rows·columns, D] each → the fused map.  The first ones
  // become the finest map, and the fused map is twice as large.
  Tensor forward(const std::vector<Tensor>& tokens, int64_t rows, int64_t columns) const;
  std::string type() const override { return "Neck"; }
  void visit(nn::Visitor& visitor) override;

 private:
  Tensor patches_of(const Tensor& tokens, int64_t count, size_t index) const;

  DptNeckConfig config_;
  nn::ModuleList<nn::Linear> readout_projects_;
  nn::ModuleList<DptReassembleLayer> reassemble_;
  nn::ModuleList<nn::Conv2d> convs_;
  nn::ModuleList<DptFusionLayer> fusion_;
};

}  // namespace vitrail::models
