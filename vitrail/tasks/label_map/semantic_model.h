// SPDX-License-Identifier: Apache-2.0
#pragma once
// A semantic segmenter: a class of each pixel.
#include "vitrail/analysis/label_map.h"
#include "vitrail/image/transform.h"
#include "vitrail/infer/function_session.h"
#include "vitrail/models/semantic/semantic_segmenter.h"
#include "vitrail/tasks/label_map/label_map_model.h"

namespace vitrail::tasks {

struct SemanticEncoding : ImageEncoding {
  size_t bytes() const override;
  Tensor logits;  // [h, w, classes], of a model without windows
  std::vector<analysis::ScoreWindow> windows;
  std::array<int64_t, 2> resized{};  // the size that they cover
};

class SemanticModel : public LabelMapModel {
 public:
  // Throws Error for options other than threads and precision.
  SemanticModel(const models::ModelFiles& files, const OpenOptions& options);

  std::string family() const override { return "a semantic segmenter"; }
  std::string config() const override;
  std::string facts() const override;
  kernels::Precision precision() const override { return precision_; }
  std::vector<std::string> class_names() const override { return model_.config().labels; }
  std::shared_ptr<const ImageEncoding> encode(const image::ImageView& photo) const override;
  std::vector<LabelMapTask> label_map_tasks() const override { return {LabelMapTask::semantic}; }
  std::array<int64_t, 2> nominal_size() const override { return model_.config().resize.size; }
  LabelMap label_map(const ImageEncoding& encoding, LabelMapTask task, int64_t height, int64_t width,
                     const LabelMapThresholds& thresholds) const override;
  std::optional<Network> network() const override;

 private:
  Tensor prepared(const image::ImageView& photo) const;  // [1, C, H, W]
  Tensor logits_of(const Tensor& input) const;           // [h, w, classes]

  kernels::Precision precision_;
  models::SemanticFiles files_;
  models::SemanticSegmenter model_;
  image::EvalTransform transform_;
  std::unique_ptr<infer::FunctionSession> session_;
};

Family semantic_family();

}  // namespace vitrail::tasks
