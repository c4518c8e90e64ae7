// SPDX-License-Identifier: Apache-2.0
#pragma once
// ViTPose: heat maps of the key points of a person.
#include <map>
#include <mutex>

#include "vitrail/models/vitpose/vitpose.h"
#include "vitrail/tasks/network_model.h"
#include "vitrail/tasks/pose/poses.h"

namespace vitrail::tasks {

class PoseModel : public NetworkModel<LoadedModel, models::VitPose, models::VitPoseConfig> {
 public:
  // Throws Error for options other than threads and precision.
  PoseModel(const models::ModelFiles& files, const OpenOptions& options, int64_t dataset = 0);

  std::string family() const override { return "ViTPose"; }
  std::string config() const override;
  std::string facts() const override;
  image::ColorMode color_mode() const override { return image::ColorMode::rgb; }
  std::unique_ptr<Request> tensors() const override;  // heat maps of the whole image
  void warm_up() const override;
  std::optional<Network> network() const override;

  // ViTPose++ with the expert for a data set of the training, which the first call reads.  Throws Error for one that
  // the model does not have.
  const PoseModel& of_dataset(int64_t dataset) const;
  const Skeleton& skeleton() const { return skeleton_; }
  // Throws Error if no names of key points say left and right.
  void check_flip_test() const;

  // The person in a box of an image.  flip_test: by the mean of the heat maps of the crop and of its mirror image.
  Pose pose(const image::ImageView& photo, const PersonBox& box, bool flip_test) const;
  // The heat maps [K, h, w] of a crop at the model's input, and of an image that is one person.
  Tensor heat_maps(const image::Image& crop) const;
  Tensor whole_heat_maps(const image::ImageView& photo) const;

 protected:
  infer::NamedTensors forward(const infer::NamedTensors& inputs) const override;
  Shape nominal_input() const override;
  Tensor prepared(const image::ImageView& photo) const override;  // that of whole_heat_maps()

 private:
  const std::array<int64_t, 2>& crop_size() const { return net().config().backbone.img_size; }
  CropRegion whole_region(const image::ImageView& photo) const;
  Tensor normalized(const image::Image& crop) const;  // [1, C, H, W]

  models::ModelFiles source_;
  OpenOptions options_;
  int64_t dataset_;
  Skeleton skeleton_;
  std::vector<int64_t> mirrored_;  // the counterparts of the key points
  mutable std::mutex mutex_;
  mutable std::map<int64_t, std::unique_ptr<const PoseModel>> others_;  // by data set
};

Family pose_family();

}  // namespace vitrail::tasks
