// SPDX-License-Identifier: Apache-2.0
#pragma once
// OWL-ViT and OWLv2.  An image is encoded once for all labels and examples.
#include <mutex>

#include "vitrail/infer/function_session.h"
#include "vitrail/models/owl/owl.h"
#include "vitrail/pipeline/dual_model.h"
#include "vitrail/tasks/open_detect/open_detection_model.h"

namespace vitrail::tasks {

struct OwlEncoding : ImageEncoding {
  size_t bytes() const override;
  models::OwlOutput patches;  // with a batch axis of 1
};

class OwlModel : public OpenDetectionModel {
 public:
  // Throws Error for options other than threads and precision.
  OwlModel(const models::ModelFiles& files, const OpenOptions& options);
  ~OwlModel() override;

  std::string family() const override { return files_.config.objectness ? "OWLv2" : "OWL-ViT"; }
  std::string config() const override;
  std::string facts() const override;
  kernels::Precision precision() const override { return precision_; }
  std::unique_ptr<Request> tensors() const override;  // embeddings and boxes of the patches
  void warm_up() const override;
  // The first call reads the weights again.
  std::optional<Network> network() const override;
  std::shared_ptr<const ImageEncoding> encode(const image::ImageView& photo) const override;

  Tensor embed_labels(const std::vector<std::string>& labels, const std::vector<std::string>& templates,
                      const ProgressCallback& progress = {}) const override;
  // The query of transformers' embed_image_query().  With a box, and in OWL-ViT with the whole image as the box, that
  // of the patch whose embedding is least like the mean among those whose boxes overlap it nearly best.  In OWLv2, that
  // of the patch with the highest objectness.
  Tensor embed_example(const ImageEncoding& example,
                       const std::optional<std::array<float, 4>>& box = {}) const override;
  Scores scores(const ImageEncoding& encoding, const Tensor& queries) const override;

 private:
  struct Whole;  // the image tower with the heads

  Tensor prepared(const image::ImageView& photo) const;  // [1, C, S, S]
  // The width and the height in pixels that boxes are shares of.
  std::array<float, 2> extent_of(const ImageEncoding& encoding) const;

  int threads_;
  kernels::Precision precision_;
  models::OwlFiles files_;
  DualModel towers_;
  models::OwlHeads heads_;
  std::unique_ptr<infer::FunctionSession> session_;  // the heads
  mutable std::once_flag whole_once_;
  mutable std::unique_ptr<Whole> whole_;  // null: network() was not called
};

Family owl_family();

}  // namespace vitrail::tasks
