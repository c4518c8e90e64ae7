// SPDX-License-Identifier: Apache-2.0
#pragma once
// OWL-ViT (Minderer et al. 2022, "Simple Open-Vocabulary Object Detection") and OWLv2 (Minderer et al. 2023, "Scaling
// Open-Vocabulary Object Detection"): each patch of CLIP's image tower predicts a box and an embedding, which is
// compared with those of texts or of objects in other images.
#include <array>
#include <optional>
#include <string>

#include "vitrail/models/configured_files.h"
#include "vitrail/models/load.h"
#include "vitrail/nn/layer_norm.h"
#include "vitrail/nn/linear.h"

namespace vitrail::models {

struct OwlConfig {
  std::string architecture = "owlv2";        // model_type of transformers: or "owlvit"
  int64_t vision_dim = 768, text_dim = 512;  // text_dim: that of embeddings
  std::array<int64_t, 2> grid{60, 60};       // rows and columns of patches
  double norm_eps = 1e-5;
  bool objectness = true;  // a third head: how likely a box has an object of any kind
  bool pads = true;        // images are padded to a square, else their ratio is lost
};

// The outputs of the N patches.
struct OwlOutput {
  Tensor class_embeds;              // [B, N, text_dim]
  Tensor logit_shift, logit_scale;  // [B, N, 1]
  Tensor boxes;       // [B, N, 4]: centre x, centre y, width and height as shares of the square that the model sees
  Tensor objectness;  // logits [B, N]; undefined without that head
};

// Three linear layers "dense0", "dense1", "dense2" with GELU between them.
class OwlMlp : public nn::Module {
 public:
  OwlMlp(int64_t dim, int64_t out, const ParamSource& params);
  Tensor forward(const Tensor& x) const;
  std::string type() const override { return "MLP"; }
  void visit(nn::Visitor& visitor) override;

 private:
  nn::Linear dense0_, dense1_, dense2_;
};

// Parameters have transformers' names: layer_norm, class_head.*, box_head.*, objectness_head.*
class OwlHeads : public nn::Module {
 public:
  OwlHeads(const OwlConfig& config, const ParamSource& params);
  // The normalised tokens of the image tower, the class token first, [B, 1 + N, vision_dim].
  OwlOutput forward(const Tensor& tokens) const;
  std::string type() const override { return "OWLHeads"; }
  void visit(nn::Visitor& visitor) override;

 private:
  nn::LayerNorm layer_norm_;
  nn::Linear dense0_, logit_shift_, logit_scale_;
  OwlMlp box_head_;
  std::optional<OwlMlp> objectness_head_;
  Tensor box_bias_;  // [1, N, 4]
};

// The logit of each query at each patch: queries [B, Q, text_dim] of any length → [B, N, Q].
Tensor owl_logits(const OwlOutput& patches, const Tensor& queries);

// The image tower with the heads.  Parameters: vision.* with timm's names, heads.*
class OwlNetwork : public nn::Module {
 public:
  OwlNetwork(const OwlConfig& config, const VisionTransformerConfig& vision, const ParamSource& params);
  OwlOutput forward(const Tensor& images) const;  // [B, C, S, S]
  std::string type() const override { return "OWL"; }
  void visit(nn::Visitor& visitor) override;

 private:
  VisionTransformer vision_;
  OwlHeads heads_;
};

// The key map is that of OwlNetwork.
struct OwlFiles : ConfiguredFiles<OwlConfig> {
  OpenedModel towers;  // CLIP, as a dual model
};

// Whether weights have the tensors of an OWL-ViT or OWLv2.
bool is_owl(const ModelFiles& files);

// Opens a folder of transformers' OwlViTForObjectDetection or Owlv2ForObjectDetection.
OwlFiles open_owl(const ModelFiles& files);

// In eval mode with f32 weights.  Both throw one Error that lists all missing, extra and misshapen keys.
OwlHeads build_owl_heads(const OwlFiles& files);
OwlNetwork build_owl_network(const OwlFiles& files);

}  // namespace vitrail::models
