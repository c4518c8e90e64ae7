// SPDX-License-Identifier: Apache-2.0
#pragma once
// A depth estimator: a map of an image's size, whose values are depths or inverse depths.
#include "vitrail/models/depth/depth_estimator.h"
#include "vitrail/tasks/network_model.h"

namespace vitrail::tasks {

struct DepthEncoding : ImageEncoding {
  size_t bytes() const override { return static_cast<size_t>(map.numel()) * sizeof(float); }
  Tensor map;  // [h, w], at the size of the model's input
};

class DepthModel : public NetworkModel<LoadedModel, models::DepthEstimator, models::DepthConfig> {
 public:
  // Throws Error for options other than threads and precision.
  DepthModel(const models::ModelFiles& files, const OpenOptions& options);

  std::string family() const override { return "a depth estimator"; }
  std::string config() const override;
  std::string facts() const override;
  image::ColorMode color_mode() const override { return image::ColorMode::rgb; }
  std::unique_ptr<Request> tensors() const override;
  void warm_up() const override;
  std::shared_ptr<const ImageEncoding> encode(const image::ImageView& photo) const override;

  // The map of an encoding at another size, as transformers' post_process_depth_estimation: [height, width], in metres
  // for a metric model, else inverse depth without a unit.
  Tensor depth(const ImageEncoding& encoding, int64_t height, int64_t width) const;
  const models::DepthConfig& depth_config() const { return net().config(); }

 protected:
  infer::NamedTensors forward(const infer::NamedTensors& inputs) const override;
  Shape nominal_input() const override;
  Tensor prepared(const image::ImageView& photo) const override;
};

Family depth_family();

}  // namespace vitrail::tasks
