// SPDX-License-Identifier: Apache-2.0
#pragma once
// ViTMatte: the alpha of an image with a trimap.
#include "vitrail/image/transform.h"
#include "vitrail/infer/function_session.h"
#include "vitrail/models/vitmatte/vitmatte.h"
#include "vitrail/tasks/loaded_model.h"

namespace vitrail::tasks {

class MatteModel : public LoadedModel {
 public:
  // Throws Error for options other than threads and precision.
  MatteModel(const models::ModelFiles& files, const OpenOptions& options);

  std::string family() const override { return "a matting model"; }
  std::string config() const override;
  std::string facts() const override;
  kernels::Precision precision() const override { return precision_; }
  image::ColorMode color_mode() const override { return image::ColorMode::rgb; }
  std::unique_ptr<Request> tensors() const override;
  void warm_up() const override;
  std::optional<Network> network() const override;

  // Alpha [height, width] from 0 to 1.  trimap: grey, of the image's size: 0 in the background, 255 in the foreground.
  Tensor alpha(const image::Image& photo, const image::Image& trimap) const;

 private:
  infer::NamedTensors forward(const infer::NamedTensors& inputs) const;
  Tensor prepared(const image::ImageView& photo, const image::Image& trimap) const;  // [1, 4, H, W], padded

  kernels::Precision precision_;
  models::VitMatteFiles files_;
  models::VitMatte model_;
  image::EvalTransform transform_;
  models::Preprocessing pixels_;  // normalises all four channels
  std::unique_ptr<infer::FunctionSession> session_;
};

Family matte_family();

// Whether a model is one; then the model itself.
bool is_matte_model(const LoadedModel& model);
const MatteModel& matte_model(const LoadedModel& model);

}  // namespace vitrail::tasks
