// SPDX-License-Identifier: Apache-2.0
#pragma once
// A semantic segmenter in training.
#include <memory>
#include <string>
#include <vector>

#include "vitrail/models/semantic/heads.h"
#include "vitrail/models/vision_transformer.h"
#include "vitrail/train/recipe/recipe.h"

namespace vitrail::train {

// models::LinearSemanticHead whose batch normalisation is not part of the layer behind it: `conv_seg` behind `bn`,
// whose statistics do not change: those of torch.nn.BatchNorm2d in eval mode.
class TrainedLinearHead : public models::SemanticHeadModule {
 public:
  TrainedLinearHead(int64_t features, int64_t classes, bool batch_norm, const ParamSource& params);
  Tensor forward(const std::vector<Tensor>& tokens, int64_t rows, int64_t columns) const override;
  // Sets the mean and the variance of each feature.
  void normalise(const std::vector<double>& mean, const std::vector<double>& variance);
  std::string type() const override { return "LinearHead"; }
  void visit(nn::Visitor& visitor) override;

 private:
  Tensor gamma_, beta_, mean_, variance_;  // undefined without a batch normalisation
  Tensor weight_, bias_;
};

// The parameters of models::SemanticSegmenter, with those of the linear head's batch normalisation by themselves.  A
// DPT head is that of inference, without a batch normalisation: the statistics of a few images per batch are noise, and
// the backbone's final norm is in front of the head.
class TrainedSegmenter : public nn::Module {
 public:
  TrainedSegmenter(models::VisionTransformer backbone, models::SemanticConfig config, const ParamSource& head);
  Tensor features(const Tensor& images) const;  // [B, C, H, W] → [B, h, w, D]
  Tensor forward(const Tensor& images) const;   // [B, C, H, W] → logits [B, h', w', classes]
  TrainedLinearHead& linear_head() { return dynamic_cast<TrainedLinearHead&>(*head_); }
  const models::SemanticConfig& config() const { return config_; }
  std::string type() const override { return "SemanticSegmenter"; }
  void visit(nn::Visitor& visitor) override;

 private:
  models::SemanticConfig config_;
  models::VisionTransformer backbone_;
  std::unique_ptr<models::SemanticHeadModule> head_;
};

// What labels [B · height · width] are compared with, and how.
struct MapLossOptions {
  std::array<int64_t, 2> size{};  // height and width of the maps
  int64_t ignored = 255;
  double label_smoothing = 0;
  Tensor class_weights{};  // undefined: none
};

// The cross-entropy of logits [B, h, w, classes], bilinearly enlarged to the size of the maps, as the mean over the
// pixels with a class.
Tensor map_loss(const Tensor& logits, const Tensor& labels, const MapLossOptions& options);

struct PreparedSegmenter {
  TrainedSegmenter model;
  std::vector<std::string> notes;   // how a checkpoint was adapted, for the user
  std::vector<std::string> frozen;  // name patterns of the parameters that are not trained
};

// The model of a recipe with the objective "semantic".  Throws Error as prepare_model(), for blocks that the Vision
// Transformer does not have, and for one that has too few for the head.
PreparedSegmenter prepare_segmenter(const Recipe& recipe, const std::vector<std::string>& classes);

}  // namespace vitrail::train
