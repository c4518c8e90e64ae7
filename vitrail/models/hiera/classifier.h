// SPDX-License-Identifier: Apache-2.0
#pragma once
// Hiera as a classifier of images, and as their encoder.
#include <string>

#include "vitrail/models/configured_files.h"
#include "vitrail/models/hiera/hiera.h"
#include "vitrail/models/model_config.h"
#include "vitrail/models/model_files.h"

namespace vitrail::models {

struct HieraClassifierConfig {
  HieraConfig trunk = {};
  // Classes, labels and the nominal size of images, in the fields that a Vision Transformer has for them; `vit` is no
  // configuration of the trunk.  num_classes 0: features alone.
  ModelConfig classes = {};
  Preprocessing preprocessing = {};
};

struct HieraOutput {
  Tensor logits;    // [B, classes]; undefined without a classifier
  Tensor features;  // [B, C], what the classifier reads: the norm of the mean of the last stage's cells
};

// Parameters have timm's names: those of HieraTrunk, head.norm and head.fc.
class HieraClassifier : public nn::Module {
 public:
  HieraClassifier(const HieraClassifierConfig& config, const ParamSource& params);
  // Normalised images [B, C, H, W].  Throws Error for sides as HieraTrunk::forward().
  HieraOutput forward(const Tensor& images) const;
  const HieraClassifierConfig& config() const { return config_; }
  std::string type() const override { return "Hiera"; }
  void visit(nn::Visitor& visitor) override;

 private:
  HieraClassifierConfig config_;
  HieraTrunk trunk_;
  nn::LayerNorm norm_;
  std::optional<nn::Linear> head_;
};

using HieraFiles = ConfiguredFiles<HieraClassifierConfig>;

// Whether the files are of transformers' HieraForImageClassification or HieraModel, or of timm's hiera_*, by their
// tensors.
bool is_hiera(const ModelFiles& files);

// Reads config.json of transformers (with preprocessor_config.json) or timm.  Positions of another size than the
// image's are resized.  Throws Error for settings that no published model has.
HieraFiles open_hiera(const ModelFiles& files);
HieraClassifier load_hiera(const HieraFiles& files);  // throws one Error that lists all wrong keys

// config: the text of config.json, which `path` names in errors, with that of preprocessor_config.json or nothing.
HieraClassifierConfig read_hiera_config(const std::string& config, const std::string& path,
                                        const std::string& preprocessor, const std::string& preprocessor_path);

}  // namespace vitrail::models
