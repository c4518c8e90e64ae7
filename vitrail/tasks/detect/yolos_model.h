// SPDX-License-Identifier: Apache-2.0
#pragma once
// YOLOS: objects found by tokens beside the patches.
#include "vitrail/models/yolos/yolos.h"
#include "vitrail/tasks/detect/detection_model.h"
#include "vitrail/tasks/detect/query_detections.h"
#include "vitrail/tasks/network_model.h"

namespace vitrail::tasks {

class YolosModel : public NetworkModel<DetectionModel, models::Yolos, models::YolosConfig> {
 public:
  // Throws Error for options other than threads and precision.
  YolosModel(const models::ModelFiles& files, const OpenOptions& options);

  std::string family() const override { return "YOLOS"; }
  std::string config() const override;
  std::string facts() const override;
  std::vector<std::string> class_names() const override { return net().config().labels; }
  std::unique_ptr<Request> tensors() const override;  // logits and boxes
  void warm_up() const override;
  std::shared_ptr<const ImageEncoding> encode(const image::ImageView& photo) const override;
  // The score is the probability of the best class, as of transformers' post_process_object_detection.
  Detections detections(const ImageEncoding& encoding, float threshold) const override;

 protected:
  infer::NamedTensors forward(const infer::NamedTensors& inputs) const override;
  Shape nominal_input() const override;
  Tensor prepared(const image::ImageView& photo) const override;
};

Family yolos_family();

}  // namespace vitrail::tasks
