// SPDX-License-Identifier: Apache-2.0
#pragma once
// ViTMatte: the alpha of an image with a trimap.
#include "vitrail/models/vitmatte/vitmatte.h"
#include "vitrail/tasks/network_model.h"

namespace vitrail::tasks {

class MatteModel : public NetworkModel<LoadedModel, models::VitMatte, models::VitMatteConfig> {
 public:
  // Throws Error for options other than threads and precision.
  MatteModel(const models::ModelFiles& files, const OpenOptions& options);

  std::string family() const override { return "a matting model"; }
  std::string config() const override;
  std::string facts() const override;
  image::ColorMode color_mode() const override { return image::ColorMode::rgb; }
  std::unique_ptr<Request> tensors() const override;
  void warm_up() const override;
  std::optional<Network> network() const override;

  // Alpha [height, width] from 0 to 1.  trimap: grey, of the image's size: 0 in the background, 255 in the foreground.
  Tensor alpha(const image::Image& photo, const image::Image& trimap) const;

 protected:
  infer::NamedTensors forward(const infer::NamedTensors& inputs) const override;
  Shape nominal_input() const override;
  Tensor prepared(const image::ImageView& photo) const override;  // all alpha is unknown

 private:
  Tensor prepared(const image::ImageView& photo, const image::Image& trimap) const;  // [1, 4, H, W], padded

  models::Preprocessing pixels_;  // normalises all four channels
};

Family matte_family();

}  // namespace vitrail::tasks
