// SPDX-License-Identifier: Apache-2.0
#pragma once
// Segment Anything: an image encoder, whose embeddings requests share, and masks of prompts.
#include "vitrail/models/model_bytes.h"
#include "vitrail/sam/predictor.h"
#include "vitrail/tasks/loaded_model.h"

namespace vitrail::tasks {

constexpr const char* kSegmenters = "one of Segment Anything";  // Task::model

struct SegmentEncoding : ImageEncoding {
  explicit SegmentEncoding(sam::ImageEmbedding of_image);
  size_t bytes() const override;
  sam::ImageEmbedding embedding;
};

class SegmentModel : public LoadedModel {
 public:
  // Throws Error for options other than threads and precision.
  SegmentModel(const models::ModelFiles& files, const OpenOptions& options);
  SegmentModel(const models::ModelBytes& bytes, const OpenOptions& options);

  std::string family() const override { return "Segment Anything"; }
  std::string config() const override;
  std::string facts() const override;
  kernels::Precision precision() const override { return precision_; }
  image::ColorMode color_mode() const override { return image::ColorMode::rgb; }
  std::unique_ptr<Request> tensors() const override;
  void warm_up() const override;
  std::shared_ptr<const ImageEncoding> encode(const image::ImageView& photo) const override;

  const sam::Predictor& predictor() const { return predictor_; }

 private:
  kernels::Precision precision_;
  sam::Predictor predictor_;
};

Family segment_family();

}  // namespace vitrail::tasks
