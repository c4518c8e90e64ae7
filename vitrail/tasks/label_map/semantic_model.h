// SPDX-License-Identifier: Apache-2.0
#pragma once
// A semantic segmenter: a class of each pixel.
#include "vitrail/analysis/label_map.h"
#include "vitrail/models/semantic/semantic_segmenter.h"
#include "vitrail/tasks/label_map/label_map_model.h"
#include "vitrail/tasks/network_model.h"

namespace vitrail::tasks {

struct SemanticEncoding : ImageEncoding {
  size_t bytes() const override;
  Tensor logits;  // [h, w, classes], of a model without windows
  std::vector<analysis::ScoreWindow> windows;
  std::array<int64_t, 2> resized{};  // the size that they cover
};

class SemanticModel : public NetworkModel<LabelMapModel, models::SemanticSegmenter, models::SemanticConfig> {
 public:
  // Throws Error for options other than threads and precision.
  SemanticModel(const models::ModelFiles& files, const OpenOptions& options);

  std::string family() const override { return "a semantic segmenter"; }
  std::string config() const override;
  std::string facts() const override;
  std::vector<std::string> class_names() const override { return net().config().labels; }
  std::shared_ptr<const ImageEncoding> encode(const image::ImageView& photo) const override;
  std::vector<LabelMapTask> label_map_tasks() const override { return {LabelMapTask::semantic}; }
  std::array<int64_t, 2> nominal_size() const override { return net().config().resize.size; }
  LabelMap label_map(const ImageEncoding& encoding, LabelMapTask task, int64_t height, int64_t width,
                     const LabelMapThresholds& thresholds) const override;
  std::optional<Network> network() const override;

 protected:
  infer::NamedTensors forward(const infer::NamedTensors& inputs) const override;
  Shape nominal_input() const override;
  Tensor prepared(const image::ImageView& photo) const override;  // the first window

 private:
  Tensor resized(const image::ImageView& photo) const;  // [1, C, H, W]
  Tensor logits_of(const Tensor& input) const;          // [h, w, classes]
};

Family semantic_family();

}  // namespace vitrail::tasks
