// SPDX-License-Identifier: Apache-2.0
#pragma once
// A model under its name.
#include <memory>
#include <string>
#include <vector>

#include "vitrail/base/mapped_file_internal.h"
#include "vitrail/pipeline/dual_model.h"
#include "vitrail/sam/predictor.h"
#include "vitrail/serve/options.h"

namespace vitrail::serve {

class ServedModel {
 public:
  // Opens a model and runs a forward pass.  A dual model without a tokenizer serves images only, with a warning.
  // Throws Error as vitrail::Model.
  ServedModel(const ModelSource& source, const ModelOptions& options);

  const std::string& name() const { return name_; }
  kernels::Precision precision() const { return precision_; }
  uint64_t number() const { return number_; }  // no other model of this process has it
  // Throws Error naming a file of the model that has changed since it was opened: results may be wrong.
  void check_files() const { files_.check(); }
  bool has_changed_files() const;
  const sam::Predictor* segmenter() const { return segmenter_.get(); }  // null: not a model of Segment Anything
  // Not for a model of Segment Anything.
  const Model& images() const { return dual_ ? dual_->images() : *images_; }
  const DualModel* dual() const { return dual_.get(); }  // null: an image model alone
  int64_t embedding_dim() const;                         // elements of an embedding
  int64_t image_tokens() const;                          // the patches of an image and the tokens before them
  // Whether it has a classifier.
  bool classifies() const {
    return !segmenter_ && images().config().vit.num_classes > 0 && !images().config().vit.projection_head;
  }

 private:
  void open_segmenter(const ModelSource& source, const ModelOptions& options);
  void open_images(const ModelSource& source, const ModelOptions& options);

  std::string name_;
  uint64_t number_;
  MappedFileGroup files_;
  kernels::Precision precision_;
  std::unique_ptr<DualModel> dual_;
  std::unique_ptr<Model> images_;
  std::unique_ptr<sam::Predictor> segmenter_;
};

using ModelPointer = std::shared_ptr<const ServedModel>;

}  // namespace vitrail::serve
