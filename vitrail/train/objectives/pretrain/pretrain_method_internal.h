// SPDX-License-Identifier: Apache-2.0
#pragma once
// How a model learns from images without labels.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "vitrail/data/loader/loader.h"
#include "vitrail/models/vision_transformer.h"
#include "vitrail/train/objectives/objective.h"
#include "vitrail/train/objectives/pretrain/methods.h"
#include "vitrail/train/objectives/pretrain/pretrain_recipe_internal.h"
#include "vitrail/train/run/run_data_internal.h"

namespace vitrail::train {

// The images of a step.
struct PretrainBatch {
  const data::Batch& data;  // the labels are the images' positions among the training images
  uint64_t number = 0;      // index of the batch in the run
  double epochs = 0;        // so far, with fractions
  bool held_out = false;    // held-out images: the model is in eval mode, and the loss changes no state
};

class PretrainMethod {
 public:
  virtual ~PretrainMethod() = default;

  // What is kept in checkpoints with the model and is no part of it: a classifier, a projector, a decoder, a teacher.
  virtual nn::Module& layers() = 0;
  // Name patterns of parameters that no gradient changes: of the model, and of layers() with the prefix "pretrain.".
  virtual std::vector<std::string> frozen() const { return {}; }

  // The mean loss of the images.
  virtual Tensor loss(const PretrainBatch& batch) = 0;
  // After a step of the optimiser.  `progress`: the share of the run's steps that are done, in (0, 1].
  virtual void end_step(double /*progress*/) {}

  // The model that is measured and saved, if it is not the trained one.  `prefix`: that of its parameters' names.
  struct Saved {
    const models::VisionTransformer* model = nullptr;
    std::string prefix = {};
  };
  virtual Saved saved() const { return {}; }

  // What the model predicts of images, as images for the report, normalised [B, C, H, W] each.
  virtual std::vector<Tensor> predicted_images(const Tensor& /*images*/) const { return {}; }
};

// What a method is made from.  The references outlive it.
struct PretrainContext {
  const Recipe& recipe;
  models::VisionTransformer& model;  // its logits are the pooled features
  image::EvalTransform transform;    // that images get without augmentation
  const Subset& images;              // the training images
  std::filesystem::path folder{};    // the run's
  const ProcessGroup& group;
};

// Settings of the recipe that is chosen without one.
struct PretrainDefaults {
  int64_t max_batch = 64;
  double epochs = 2, scratch_epochs = 10;  // times those of fine-tuning
  double lr = 5e-5, scratch_lr = 5e-4;     // for a batch of 64 images; the rate is proportional to the batch's root
  double beta2 = 0.999;
  double final_lr = 0;  // share of the peak rate
  double weight_decay = 0.05;
  std::optional<double> final_weight_decay = {};
  double label_smoothing = 0, clip = 0;
  bool clip_per_tensor = false;
  data::AugmentOptions augment{};
};

// A row of the table of methods.
struct PretrainMethodRow {
  std::string name;  // PretrainRecipe::method
  std::function<std::unique_ptr<PretrainMethod>(const PretrainContext&)> make;
  std::string reason;          // why one chooses it, for the user
  std::string loss_note = {};  // how its loss should change, for the report
  // Whether PretrainMethod::loss() also takes held-out images, and a lower loss on them means a better model.
  bool has_held_out_loss = false;
  bool watches_rank = true;   // a small effective rank means that the features have collapsed
  bool loss_decides = false;  // between weights also where a probe measures, because k-NN says little of the features
  std::vector<std::string> fields = {};  // fields of PretrainRecipe for this method alone
  PretrainDefaults defaults{};
  // Sets the fields whose best values depend on the side of an image in pixels.
  std::function<void(PretrainRecipe&, int64_t side)> choose{};
  // Sets the loader's views of an image; none: one augmented view.  `patch`: side of a patch.
  std::function<void(const Recipe&, int64_t patch, data::LoaderOptions&)> set_views{};
  bool has_local_views = false;  // PretrainRecipe::local_views applies
  // The time of a training step relative to one forward and backward pass of the model.
  std::function<double(const PretrainRecipe&)> cost{};
  bool keeps_layers = false;         // layers() are written beside the model, for a run that starts from it
  bool smooths_labels = false;       // loss.label_smoothing applies
  bool norm_before_pooling = false;  // the model's final norm is in front of the pooling
};
const PretrainMethodRow& pretrain_method_of(const Recipe& recipe);  // throws Error if there is none

// The method that suits so many training images, a model from scratch or a pretrained one, and a teacher if one is
// given.
std::string default_pretrain_method(int64_t images, bool scratch, bool teacher);

// Random resized crops of these shares of an image, flips, colour jitter and grey images.
data::AugmentOptions strong_augmentation(double min_scale);

// Global and local views as `pretrain` describes them, one group each, with the augmentation of the recipe.
std::vector<data::ViewGroup> multi_crop(const Recipe& recipe, int64_t patch, const data::LoaderOptions& options);

// The cost of the views of an image, relative to one of the model's own size.
double multi_crop_cost(const PretrainRecipe& pretrain);

// The features of all V views of a batch's images, [V · B, D], row v · B + i for view v of image i.  Each view has
// random draws of its own.
Tensor features_of_views(const models::VisionTransformer& model, const data::Batch& batch);

// The methods.
PretrainMethodRow diet_method();
PretrainMethodRow lejepa_method();
PretrainMethodRow mae_method();
PretrainMethodRow distill_method();
PretrainMethodRow dino_method();
constexpr int64_t kMaxDietImages = 20'000;  // its classifier has a row for each

}  // namespace vitrail::train
