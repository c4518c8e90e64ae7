// SPDX-License-Identifier: Apache-2.0
#pragma once
// RF-DETR (Robinson et al. 2025, "RF-DETR: Neural Architecture Search for Real-Time Detection Transformers"): objects
// found by queries that read one map of a DINOv2 with windows.  LW-DETR (Chen et al. 2024, "LW-DETR: A Transformer
// Replacement to YOLO for Real-Time Detection"), from which it comes, has the same decoder, which reads maps of several
// sizes.  Maps are [B, h, w, C].
#include <array>
#include <optional>

#include "vitrail/models/configured_files.h"
#include "vitrail/models/dense/vit_backbone.h"
#include "vitrail/models/model_files.h"
#include "vitrail/models/rf_detr/config.h"
#include "vitrail/models/rf_detr/mask_head.h"
#include "vitrail/nn/block.h"
#include "vitrail/nn/convolution.h"
#include "vitrail/nn/detr_mlp.h"
#include "vitrail/nn/multihead_attention.h"
#include "vitrail/nn/patch_embed.h"

namespace vitrail::models {

// A Vision Transformer whose patches are cut into windows, each with a class token if there is one.  In some blocks all
// tokens attend to each other, in the others those of a window.  Parameters have timm's names.
class RfDetrBackbone : public VitBackbone {
 public:
  RfDetrBackbone(const RfDetrBackboneConfig& config, const ParamSource& params);
  std::vector<Tensor> forward(const Tensor& images) const;  // [B, C, S, S] → maps [B, h, w, D]
  const VisionTransformerConfig& config() const override { return config_.vit; }
  void visit(nn::Visitor& visitor) override;

 private:
  // [B, C, S, S] → tokens of all windows [B, windows, (1 +) cells, D]
  Tensor embed(const Tensor& images, int64_t grid) const;

  RfDetrBackboneConfig config_;
  nn::PatchEmbed patch_embed_;
  Tensor cls_token_, pos_embed_;
  nn::ModuleList<nn::Block> blocks_;
  std::optional<nn::LayerNorm> norm_;
};

// A convolution without bias, a norm and an activation.  The convolution contains a batch normalisation.
class RfDetrConvNorm : public nn::Module {
 public:
  RfDetrConvNorm(const nn::Conv2dConfig& shape, kernels::Activation act, const RfDetrProjectorConfig& config,
                 const ParamSource& params);
  Tensor forward(const Tensor& x) const;
  std::string type() const override { return "ConvNorm"; }
  void visit(nn::Visitor& visitor) override;

 private:
  kernels::Activation act_;
  nn::Conv2d conv_;
  std::optional<nn::LayerNorm> norm_;
};

class RfDetrBottleneck : public nn::Module {
 public:
  RfDetrBottleneck(const RfDetrProjectorConfig& config, const ParamSource& params);
  Tensor forward(const Tensor& x) const { return cv2_.forward(cv1_.forward(x)); }
  std::string type() const override { return "Bottleneck"; }
  void visit(nn::Visitor& visitor) override;

 private:
  RfDetrConvNorm cv1_, cv2_;
};

// A map at another scale: a transposed convolution, behind a convolution for more than 512 channels; or one of
// stride 2.
class RfDetrSampling : public nn::Module {
 public:
  RfDetrSampling(int64_t dim, double scale, const RfDetrProjectorConfig& config, const ParamSource& params);
  Tensor forward(const Tensor& x) const;
  std::string type() const override { return "Sampling"; }
  void visit(nn::Visitor& visitor) override;

 private:
  std::optional<RfDetrConvNorm> convolution_;
  std::optional<nn::ConvTranspose2d> transposed_;
};

// Maps at one scale, joined by C2f of YOLOv8: two halves, and what a chain of bottlenecks makes of the second one, are
// joined.
class RfDetrProjector : public nn::Module {
 public:
  RfDetrProjector(const RfDetrConfig& config, double scale, const ParamSource& params);
  Tensor forward(const std::vector<Tensor>& maps) const;  // [B, h, w, D] each → [B, h, w, dim] at the scale
  std::string type() const override { return "Projector"; }
  void visit(nn::Visitor& visitor) override;

 private:
  int64_t hidden_;
  nn::ModuleList<RfDetrSampling> sampling_;  // none at scale 1
  RfDetrConvNorm cv1_, cv2_;
  nn::ModuleList<RfDetrBottleneck> m_;
  nn::LayerNorm norm_;
};

// The cells of maps, one map behind the other.
struct RfDetrCells {
  explicit RfDetrCells(const std::vector<Tensor>& maps);  // [B, h, w, D] each
  Tensor values;                                          // [B, cells, D]
  std::vector<std::array<int64_t, 2>> levels{};           // the heights and widths of the maps
};

struct RfDetrOutput {
  Tensor logits;  // [B, Q, classes]
  Tensor boxes;   // [B, Q, 4]: centre x, centre y, width and height as shares of the image's size
  Tensor masks;   // instance segmentation: logits [B, Q, h, w]
};

// The first stage: the boxes of the cells with the best classes.
class RfDetrProposals : public nn::Module {
 public:
  RfDetrProposals(const RfDetrConfig& config, const ParamSource& params);
  Tensor forward(const RfDetrCells& cells) const;  // boxes [B, queries, 4]
  // The classes and boxes of the same cells, for training.
  RfDetrOutput chosen(const RfDetrCells& cells) const;
  std::string type() const override { return "Proposals"; }
  void visit(nn::Visitor& visitor) override;

 private:
  int64_t num_queries_;
  nn::Linear enc_output_;
  nn::LayerNorm enc_output_norm_;
  nn::Linear enc_out_class_embed_;
  nn::DetrMlp enc_out_bbox_embed_;
};

// Queries read maps at points beside their boxes.  Source: MSDeformAttn of Deformable DETR.
class RfDetrCrossAttention : public nn::Module {
 public:
  RfDetrCrossAttention(const RfDetrConfig& config, const ParamSource& params);
  // queries [B, Q, D], with their positions; boxes [B, Q, 4] → [B, Q, D]
  Tensor forward(const Tensor& queries, const Tensor& boxes, const RfDetrCells& cells) const;
  std::string type() const override { return "MSDeformAttn"; }
  void visit(nn::Visitor& visitor) override;

 private:
  int64_t heads_, levels_, points_;
  nn::Linear sampling_offsets_, attention_weights_, value_proj_, output_proj_;
};

class RfDetrDecoderLayer : public nn::Module {
 public:
  RfDetrDecoderLayer(const RfDetrConfig& config, const ParamSource& params);
  // Queries attend to those of their group alone, of `groups` of one size.
  Tensor forward(const Tensor& queries, const Tensor& positions, const Tensor& boxes, const RfDetrCells& cells,
                 int64_t groups) const;
  std::string type() const override { return "DecoderLayer"; }
  void visit(nn::Visitor& visitor) override;

 private:
  kernels::Activation act_;
  nn::MultiheadAttention self_attn_;
  nn::LayerNorm norm1_;
  RfDetrCrossAttention cross_attn_;
  nn::LayerNorm norm2_;
  nn::Linear linear1_, linear2_;
  nn::LayerNorm norm3_;
};

// The positions of queries are computed from their boxes, once.
class RfDetrDecoder : public nn::Module {
 public:
  RfDetrDecoder(const RfDetrConfig& config, const ParamSource& params);
  Tensor forward(const Tensor& queries, const Tensor& boxes, const RfDetrCells& cells) const;  // [B, Q, D] → the same
  // The outputs of all layers, of queries in groups.
  std::vector<Tensor> layers(const Tensor& queries, const Tensor& boxes, const RfDetrCells& cells,
                             int64_t groups) const;
  std::string type() const override { return "Decoder"; }
  void visit(nn::Visitor& visitor) override;

 private:
  int64_t dim_;
  nn::ModuleList<nn::Linear> ref_point_head_;
  nn::ModuleList<RfDetrDecoderLayer> layers_;
  nn::LayerNorm norm_;
};

// Parameters: backbone.* with timm's names, the others with those of the authors.
class RfDetr : public nn::Module {
 public:
  RfDetr(const RfDetrConfig& config, const ParamSource& params);
  RfDetrOutput forward(const Tensor& images) const;  // [B, C, S, S]
  // What is trained, of the first groups of queries: the outputs of the last layer, of the others, and the proposals,
  // without masks.  Boxes of proposals that queries start from have no gradient (Deformable DETR).
  std::vector<RfDetrOutput> outputs(const Tensor& images, int64_t groups) const;
  const RfDetrConfig& config() const { return config_; }
  std::string type() const override { return "RFDETR"; }
  void visit(nn::Visitor& visitor) override;

 private:
  std::vector<Tensor> maps_of(const Tensor& images) const;  // those that the decoder reads

  RfDetrConfig config_;
  RfDetrBackbone backbone_;
  nn::ModuleList<RfDetrProjector> projector_;
  nn::ModuleList<RfDetrProposals> proposals_;  // one for each group
  Tensor refpoint_embed_, query_feat_;
  RfDetrDecoder decoder_;
  nn::Linear class_embed_;
  nn::DetrMlp bbox_embed_;
  std::optional<RfDetrMaskHead> segmentation_head_;
};

// Whether weights have the tensors of RF-DETR or LW-DETR.
bool is_rf_detr(const ModelFiles& files);

using RfDetrFiles = ConfiguredFiles<RfDetrConfig>;

// Reads a folder of transformers' RfDetrForObjectDetection, RfDetrForInstanceSegmentation or LwDetrForObjectDetection,
// or weights under the names of the authors.  Those of LW-DETR need config.json and preprocessor_config.json beside
// them.
RfDetrFiles open_rf_detr(const ModelFiles& files);

// The groups of queries that the files have, and the same files for the first `groups` of them.
int64_t groups_of(const RfDetrFiles& files);
RfDetrFiles with_groups(RfDetrFiles files, int64_t groups);

// In eval mode with f32 weights.  Throws one Error that lists all missing, extra and misshapen keys.
RfDetr load_rf_detr(const RfDetrFiles& files);

}  // namespace vitrail::models
