// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tasks/pose/pose_model.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "vitrail/base/error.h"
#include "vitrail/pipeline/prediction_json_internal.h"
#include "vitrail/tasks/model_facts_internal.h"

namespace vitrail::tasks {
namespace {

class PoseTensors : public Request {
 public:
  PoseTensors(const PoseModel& model, const Shape& shape) : model_(model), shape_(shape) {}

  bool keeps_photo() const override { return true; }
  void compute(Item& item, const ImageEncoding* /*encoding*/, const ProgressCallback& /*progress*/) const override {
    item.results = {{model_.whole_heat_maps(item.photo)}};
  }
  std::vector<Output> outputs() const override { return {{"heatmaps", shape_}}; }
  Tensor array(const Item& item, size_t /*output*/) const override { return item.results[0][0]; }
  std::string json(const Item& item) const override { return failure_json(item.name, "heat maps are arrays"); }

 private:
  const PoseModel& model_;
  Shape shape_;  // [K, h, w]
};

image::Image mirror_image(const image::Image& image) {
  image::Image mirrored = image;
  for (int64_t y = 0; y < image.height; ++y) {
    for (int64_t x = 0; x < image.width; ++x)
      std::copy_n(image.row(y) + 3 * (image.width - 1 - x), 3, mirrored.row(y) + 3 * x);
  }
  return mirrored;
}

}  // namespace

PoseModel::PoseModel(const models::ModelFiles& files, const OpenOptions& options, int64_t dataset)
    : NetworkModel(
          files, options, "ViTPose",
          [dataset](const models::ModelFiles& source) { return models::open_vitpose(source, dataset); },
          models::load_vitpose),
      source_(files),
      options_(options),
      dataset_(dataset),
      skeleton_{net().config().keypoints, net().config().limbs},
      mirrored_(models::mirrored_keypoints(net().config().keypoints)) {}

// The output has the name of transformers.
infer::NamedTensors PoseModel::forward(const infer::NamedTensors& inputs) const {
  return {{"heatmaps", net().forward(inputs[0].tensor)}};
}

Shape PoseModel::nominal_input() const { return {1, net().config().backbone.in_chans, crop_size()[0], crop_size()[1]}; }

std::optional<Network> PoseModel::network() const {
  std::optional<Network> network = NetworkModel::network();
  network->any_size = false;
  network->options = {{"dataset", std::to_string(dataset_)}};
  return network;
}

std::string PoseModel::config() const {
  const models::VitPoseConfig& config = net().config();
  return pipeline::json_line({{"architecture", config.architecture},
                              {"image_size", crop_size()},
                              {"keypoints", config.keypoints},
                              {"datasets", config.num_experts}});
}

std::string PoseModel::facts() const {
  const models::VisionTransformerConfig& vit = net().config().backbone;
  return facts_json({.architecture = net().config().architecture,
                     .image_size = vit.img_size,
                     .depth = vit.depth,
                     .heads = vit.num_heads,
                     .dim = vit.embed_dim,
                     .precision = precision()});
}

std::unique_ptr<Request> PoseModel::tensors() const {
  const Tensor crop = Tensor::empty(nominal_input(), DType::f32, Device::meta);
  const Shape maps = forward({{"images", crop}})[0].tensor.shape();
  return std::make_unique<PoseTensors>(*this, Shape{maps[1], maps[2], maps[3]});
}

void PoseModel::warm_up() const { heat_maps(image::make_image(crop_size()[1], crop_size()[0], 3)); }

const PoseModel& PoseModel::of_dataset(int64_t dataset) const {
  if (dataset == dataset_) return *this;
  const std::lock_guard lock(mutex_);
  std::unique_ptr<const PoseModel>& model = others_[dataset];
  if (!model) model = std::make_unique<PoseModel>(source_, options_, dataset);
  return *model;
}

void PoseModel::check_flip_test() const {
  for (size_t i = 0; i < mirrored_.size(); ++i) {
    if (mirrored_[i] != static_cast<int64_t>(i)) return;
  }
  throw Error("flip-test", "a model whose names of key points say left and right", "one without");
}

CropRegion PoseModel::whole_region(const image::ImageView& photo) const {
  return crop_region({0, 0, static_cast<double>(photo.width()), static_cast<double>(photo.height())}, crop_size());
}

Tensor PoseModel::normalized(const image::Image& crop) const { return image::apply(crop, transform()).unsqueeze(0); }

Tensor PoseModel::prepared(const image::ImageView& photo) const {
  return normalized(cropped(photo, whole_region(photo), crop_size()));
}

Tensor PoseModel::heat_maps(const image::Image& crop) const {
  const Tensor maps = run_session(normalized(crop))[0].tensor.squeeze(0);
  require_finite("heatmaps", maps);
  return maps;
}

Tensor PoseModel::whole_heat_maps(const image::ImageView& photo) const {
  return heat_maps(cropped(photo, whole_region(photo), crop_size()));
}

Pose PoseModel::pose(const image::ImageView& photo, const PersonBox& box, bool flip_test) const {
  const CropRegion region = crop_region(box.box, crop_size());
  const image::Image crop = cropped(photo, region, crop_size());
  Tensor maps = heat_maps(crop);
  if (flip_test) maps = mean_with_mirrored(maps, heat_maps(mirror_image(crop)), mirrored_);
  return {box, keypoints_of(maps, region)};
}

Family pose_family() { return {.name = "pose", .recognises = models::is_vitpose, .load = load_as<PoseModel>}; }

}  // namespace vitrail::tasks
