// SPDX-License-Identifier: Apache-2.0
#pragma once
// A depth estimator: a map of an image's size, whose values are depths or inverse depths.
#include "vitrail/image/transform.h"
#include "vitrail/infer/function_session.h"
#include "vitrail/models/depth/depth_estimator.h"
#include "vitrail/tasks/loaded_model.h"

namespace vitrail::tasks {

struct DepthEncoding : ImageEncoding {
  size_t bytes() const override { return static_cast<size_t>(map.numel()) * sizeof(float); }
  Tensor map;  // [h, w], at the size of the model's input
};

class DepthModel : public LoadedModel {
 public:
  // Throws Error for options other than threads and precision.
  DepthModel(const models::ModelFiles& files, const OpenOptions& options);

  std::string family() const override { return "a depth estimator"; }
  std::string config() const override;
  std::string facts() const override;
  kernels::Precision precision() const override { return precision_; }
  image::ColorMode color_mode() const override { return image::ColorMode::rgb; }
  std::unique_ptr<Request> tensors() const override;
  void warm_up() const override;
  std::optional<Network> network() const override;
  std::shared_ptr<const ImageEncoding> encode(const image::ImageView& photo) const override;

  // The map of an encoding at another size, as transformers' post_process_depth_estimation: [height, width], in metres
  // for a metric model, else inverse depth without a unit.
  Tensor depth(const ImageEncoding& encoding, int64_t height, int64_t width) const;
  const models::DepthConfig& depth_config() const { return model_.config(); }

 private:
  infer::NamedTensors forward(const infer::NamedTensors& inputs) const;
  Tensor prepared(const image::ImageView& photo) const;  // [1, C, H, W]

  kernels::Precision precision_;
  models::DepthFiles files_;
  models::DepthEstimator model_;
  image::EvalTransform transform_;
  std::unique_ptr<infer::FunctionSession> session_;
};

Family depth_family();

// Whether a model is one; then the model itself.
bool is_depth_model(const LoadedModel& model);
const DepthModel& depth_model(const LoadedModel& model);

}  // namespace vitrail::tasks
