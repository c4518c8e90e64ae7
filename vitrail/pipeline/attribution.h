// SPDX-License-Identifier: Apache-2.0
#pragma once
// Attribution of a classifier's logit to the patches of an image: the methods of `vitrail attention` that need more
// than attention weights.
#include <optional>
#include <string>
#include <vector>

#include "vitrail/base/callbacks.h"
#include "vitrail/base/fields.h"
#include "vitrail/pipeline/model.h"

namespace vitrail::pipeline {

struct AttributionOptions {
  std::string target = {};        // the name or index of a class; empty: the model's prediction
  std::string baseline = "mean";  // where an image has no content: mean, black or blurred
};

void describe_attribution(Fields& fields, AttributionOptions& options);

// Integrated gradients add up to a difference of logits, but for the error of their numerical integral.
struct Completeness {
  double sum = 0, difference = 0;  // that of the map; that of the logits of image and baseline
};

struct Attribution {
  int64_t target = 0;  // the class
  Tensor logits = {};  // [classes]
  Tensor map = {};     // [grid height, grid width]
  std::optional<Completeness> completeness = {};
};

// The image as the model sees it, and the class.
struct AttributedImage {
  const Model& model;                               // gives logits
  const models::VisionTransformer& differentiable;  // gives gradients: DifferentiableModel::model()
  Tensor input;                                     // [1, C, H, W]
  int64_t target = 0;
  std::string baseline = "mean";
  ProgressCallback progress = {};  // called before each pass; may throw
};

// A method is a row: a name, a line of help, and its function.
struct AttributionMethod {
  const char *name, *help;
  Attribution (*attribute)(const AttributedImage& image);  // without `target` and `logits`
  bool reads_baseline = false;
};
const std::vector<AttributionMethod>& attribution_methods();
const AttributionMethod* find_attribution(const std::string& name);  // null: none of this name

// Throws Error for a class that the model does not have.
void check_attribution(const Model& model, const AttributionOptions& options);

// differentiable: the same model.  Throws Error as check_attribution(), and for a model without a classifier.
Attribution attribute(const AttributionMethod& method, const Model& model,
                      const models::VisionTransformer& differentiable, const Tensor& input,
                      const AttributionOptions& options, const ProgressCallback& progress = {});

}  // namespace vitrail::pipeline
