// SPDX-License-Identifier: Apache-2.0
// DIET (Ibrahim et al. 2023, arXiv 2302.10260): each training image is a class.  Its settings for a pretrained model
// are those of DIET-CP (arXiv 2509.06990).
#include "vitrail/base/error.h"
#include "vitrail/base/random.h"
#include "vitrail/models/derived_config_internal.h"
#include "vitrail/nn/linear.h"
#include "vitrail/ops/loss.h"
#include "vitrail/train/objectives/pretrain/pretrain_method_internal.h"

namespace vitrail::train {
namespace {

// A class for each training image.
class DietClassifier : public nn::Module {
 public:
  DietClassifier(int64_t features, int64_t images, const ParamSource& params)
      : classifier_(features, images, false, params.child("classifier")) {}
  Tensor forward(const Tensor& features) const { return classifier_.forward(features); }
  std::string type() const override { return "DietClassifier"; }
  void visit(nn::Visitor& visitor) override { visitor.child("classifier", classifier_); }

 private:
  nn::Linear classifier_;
};

class Diet : public PretrainMethod {
 public:
  explicit Diet(const PretrainContext& context)
      : context_(context),
        params_(context.recipe.seed),
        layers_(models::feature_width_of(context.model.config()), context.images.size(),
                ParamSource(params_, "pretrain")) {}
  nn::Module& layers() override { return layers_; }
  Tensor loss(const PretrainBatch& batch) override {
    const Tensor features = context_.model.forward(batch.data.images);
    return ops::cross_entropy(layers_.forward(features), batch.data.labels, context_.recipe.loss.label_smoothing);
  }

 private:
  const PretrainContext context_;
  RandomParams params_;
  DietClassifier layers_;
};

std::unique_ptr<PretrainMethod> make_diet(const PretrainContext& context) {
  if (context.images.size() > kMaxDietImages) {
    throw Error("pretrain.method diet", str("at most ", kMaxDietImages, " training images, since each is a class"),
                str(context.images.size(), " (lejepa takes any number)"));
  }
  return std::make_unique<Diet>(context);
}

}  // namespace

PretrainMethodRow diet_method() {
  return {.name = "diet",
          .make = make_diet,
          .reason = "each image is a class: it improves a model from its weights alone, on up to 20,000 images",
          .loss_note =
              "It begins near the logarithm of the number of training images, and should fall slowly. With label "
              "smoothing it does not reach 0.",
          .defaults = {.label_smoothing = 0.3, .augment = strong_augmentation(0.2)},
          .smooths_labels = true};
}

}  // namespace vitrail::train
