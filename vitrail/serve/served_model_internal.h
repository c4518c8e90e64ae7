// SPDX-License-Identifier: Apache-2.0
#pragma once
// A model under its name.
#include <memory>
#include <string>
#include <vector>

#include "vitrail/pipeline/dual_model.h"
#include "vitrail/serve/options.h"

namespace vitrail::serve {

class ServedModel {
 public:
  // Opens a model and runs a forward pass.  A dual model without a tokenizer serves images only, with a warning.
  // Throws Error as vitrail::Model.
  ServedModel(const ModelSource& source, const ModelOptions& options);

  const std::string& name() const { return name_; }
  const Model& images() const { return dual_ ? dual_->images() : *images_; }
  const DualModel* dual() const { return dual_.get(); }  // null: an image model alone
  // Whether it has a classifier.
  bool classifies() const { return images().config().vit.num_classes > 0 && !images().config().vit.projection_head; }

 private:
  std::string name_;
  std::unique_ptr<DualModel> dual_;
  std::unique_ptr<Model> images_;
};

using ModelPointer = std::shared_ptr<const ServedModel>;

}  // namespace vitrail::serve
