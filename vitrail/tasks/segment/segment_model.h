// SPDX-License-Identifier: Apache-2.0
#pragma once
// Segment Anything: an image encoder, whose embeddings requests share, and masks of prompts.
#include <mutex>

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
  ~SegmentModel() override;

  std::string family() const override { return predictor_.second_generation() ? "SAM 2" : "Segment Anything"; }
  std::string config() const override;
  std::string facts() const override;
  kernels::Precision precision() const override { return precision_; }
  image::ColorMode color_mode() const override { return image::ColorMode::rgb; }
  std::unique_ptr<Request> tensors() const override;
  void warm_up() const override;
  std::shared_ptr<const ImageEncoding> encode(const image::ImageView& photo) const override;

  const sam::Predictor& predictor() const { return predictor_; }
  // The model with its weights in f32, for traces: the predictor's are packed.  The first call reads them again.
  // Thread-safe.  Throws Error for a model from bytes.
  const models::Sam& with_weights() const;

 private:
  std::filesystem::path path_;  // empty: from bytes
  kernels::Precision precision_;
  sam::Predictor predictor_;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<const models::Sam> with_weights_;  // null: not asked for
};

Family segment_family();

}  // namespace vitrail::tasks
