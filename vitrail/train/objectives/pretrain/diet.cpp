// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/error.h"
#include "vitrail/base/random.h"
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
        layers_(context.model.config().embed_dim, context.images, ParamSource(params_, "pretrain")) {}
  nn::Module& layers() override { return layers_; }
  Tensor loss(const data::Batch& batch) const override {
    const Tensor features = context_.model.forward(batch.images);
    return ops::cross_entropy(layers_.forward(features), batch.labels, context_.recipe.loss.label_smoothing);
  }

 private:
  const PretrainContext context_;
  RandomParams params_;
  DietClassifier layers_;
};

}  // namespace

std::unique_ptr<PretrainMethod> make_diet(const PretrainContext& context) {
  if (context.images > kMaxDietImages) {
    throw Error("pretrain.method diet", str("at most ", kMaxDietImages, " training images, since each is a class"),
                str(context.images));
  }
  return std::make_unique<Diet>(context);
}

}  // namespace vitrail::train
