// SPDX-License-Identifier: Apache-2.0
#pragma once
// RF-DETR and LW-DETR: objects found by queries that read maps of a Vision Transformer.
#include "vitrail/models/rf_detr/rf_detr.h"
#include "vitrail/tasks/detect/detection_model.h"
#include "vitrail/tasks/detect/query_detections.h"
#include "vitrail/tasks/network_model.h"

namespace vitrail::tasks {

class RfDetrModel : public NetworkModel<DetectionModel, models::RfDetr, models::RfDetrConfig> {
 public:
  // Throws Error for options other than threads and precision.
  RfDetrModel(const models::ModelFiles& files, const OpenOptions& options);

  std::string family() const override { return net().config().architecture == "lw_detr" ? "LW-DETR" : "RF-DETR"; }
  std::string config() const override;
  std::string facts() const override;
  std::vector<std::string> class_names() const override { return net().config().labels; }
  std::unique_ptr<Request> tensors() const override;  // logits, boxes, and masks if it has them
  void warm_up() const override;
  std::optional<Network> network() const override;
  std::shared_ptr<const ImageEncoding> encode(const image::ImageView& photo) const override;
  // The scores are those of classes, each by itself: a query may give several objects.  The best ones, as many as of
  // transformers' post_process_object_detection.
  Detections detections(const ImageEncoding& encoding, float threshold) const override;
  bool gives_masks() const override { return net().config().masks.has_value(); }
  void add_masks(const ImageEncoding& encoding, Detections& detections) const override;

 protected:
  infer::NamedTensors forward(const infer::NamedTensors& inputs) const override;
  Shape nominal_input() const override;
  Tensor prepared(const image::ImageView& photo) const override;
};

Family rf_detr_family();

}  // namespace vitrail::tasks
