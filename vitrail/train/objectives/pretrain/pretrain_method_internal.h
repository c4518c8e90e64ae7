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

namespace vitrail::train {

class PretrainMethod {
 public:
  virtual ~PretrainMethod() = default;

  // What is trained with the model and is no part of it: a classifier, a projector, a decoder.
  virtual nn::Module& layers() = 0;

  // The mean loss of the images of a batch, whose labels are their positions among the training images.  The model is
  // in training mode.
  virtual Tensor loss(const data::Batch& batch) const = 0;
};

// What a method is made from.  The references outlive it.
struct PretrainContext {
  const Recipe& recipe;
  models::VisionTransformer& model;  // its logits are the pooled features
  int64_t images = 0;                // training images
};

// A row of the table of methods.
struct PretrainMethodRow {
  std::string name;  // PretrainRecipe::method
  std::function<std::unique_ptr<PretrainMethod>(const PretrainContext&)> make;
  std::string reason;  // why one chooses it, for the user
};
const PretrainMethodRow& pretrain_method_of(const Recipe& recipe);  // throws Error if there is none
std::vector<std::string> pretrain_method_names();

// DIET (Ibrahim et al. 2023, arXiv 2302.10260): each training image is a class.  Throws Error for more images than
// kMaxDietImages.
std::unique_ptr<PretrainMethod> make_diet(const PretrainContext& context);
constexpr int64_t kMaxDietImages = 20'000;  // the classifier has a row for each

}  // namespace vitrail::train
