// SPDX-License-Identifier: Apache-2.0
#pragma once
// A semantic segmenter in training, whose batch normalisation is not yet part of the layer behind it.
#include <string>
#include <vector>

#include "vitrail/models/semantic/config.h"
#include "vitrail/models/vision_transformer.h"
#include "vitrail/train/recipe/recipe.h"

namespace vitrail::train {

// A linear layer `conv_seg` on the features of each patch, behind a batch normalisation `bn` whose statistics do not
// change: those of torch.nn.BatchNorm2d in eval mode.
class TrainedLinearHead : public nn::Module {
 public:
  TrainedLinearHead(int64_t features, int64_t classes, bool batch_norm, const ParamSource& params);
  Tensor forward(const Tensor& features) const;  // [B, h, w, D] → [B, h, w, classes]
  // Sets the mean and the variance of each feature.
  void normalise(const std::vector<double>& mean, const std::vector<double>& variance);
  std::string type() const override { return "LinearHead"; }
  void visit(nn::Visitor& visitor) override;

 private:
  Tensor gamma_, beta_, mean_, variance_;  // undefined without a batch normalisation
  Tensor weight_, bias_;
};

// The parameters of models::SemanticSegmenter, with those of the batch normalisation by themselves.
class TrainedSegmenter : public nn::Module {
 public:
  TrainedSegmenter(models::VisionTransformer backbone, models::SemanticConfig config, const ParamSource& head);
  Tensor features(const Tensor& images) const;  // [B, C, H, W] → [B, h, w, D]
  Tensor forward(const Tensor& images) const;   // [B, C, H, W] → logits [B, h, w, classes]
  TrainedLinearHead& head() { return head_; }
  const models::SemanticConfig& config() const { return config_; }
  std::string type() const override { return "SemanticSegmenter"; }
  void visit(nn::Visitor& visitor) override;

 private:
  models::SemanticConfig config_;
  models::VisionTransformer backbone_;
  TrainedLinearHead head_;
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

// The model of a recipe with the objective "semantic".  Throws Error as prepare_model(), and for blocks that the
// Vision Transformer does not have.
PreparedSegmenter prepare_segmenter(const Recipe& recipe, const std::vector<std::string>& classes);

}  // namespace vitrail::train
