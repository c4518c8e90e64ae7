// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tasks/depth/depth_model.h"

#include <nlohmann/json.hpp>

#include "vitrail/base/error.h"
#include "vitrail/image/resize_plane.h"
#include "vitrail/pipeline/prediction_json_internal.h"
#include "vitrail/tasks/model_facts_internal.h"

namespace vitrail::tasks {
namespace {

// The map alone, at the nominal size of the input, so that those of several images have one shape.
class DepthTensor : public Request {
 public:
  explicit DepthTensor(const DepthModel& model) : model_(model) {}

  void compute(Item& item, const ImageEncoding* encoding, const ProgressCallback& /*progress*/) const override {
    const auto [height, width] = model_.depth_config().resize.size;
    item.results = {{model_.depth(*encoding, height, width)}};
  }
  std::vector<Output> outputs() const override {
    const auto [height, width] = model_.depth_config().resize.size;
    return {{"depth", {height, width}}};
  }
  Tensor array(const Item& item, size_t /*output*/) const override { return item.results[0][0]; }
  std::string json(const Item& item) const override { return failure_json(item.name, "a depth map is an array"); }

 private:
  const DepthModel& model_;
};

}  // namespace

DepthModel::DepthModel(const models::ModelFiles& files, const OpenOptions& options)
    : NetworkModel(files, options, "a depth estimator", models::open_depth_estimator, models::load_depth_estimator) {}

infer::NamedTensors DepthModel::forward(const infer::NamedTensors& inputs) const {
  return {{"depth", net().forward(inputs[0].tensor)}};
}

Shape DepthModel::nominal_input() const {
  const auto [height, width] = net().config().resize.size;
  return {1, net().config().backbone.in_chans, height, width};
}

std::string DepthModel::config() const {
  const models::DepthConfig& model = net().config();
  return pipeline::json_line(
      {{"architecture", model.architecture}, {"image_size", model.resize.size}, {"metric", model.metric}});
}

std::string DepthModel::facts() const {
  const models::VisionTransformerConfig& vit = net().config().backbone;
  return facts_json({.architecture = net().config().architecture,
                     .image_size = net().config().resize.size,
                     .depth = vit.depth,
                     .heads = vit.num_heads,
                     .dim = vit.embed_dim,
                     .precision = precision()});
}

std::unique_ptr<Request> DepthModel::tensors() const { return std::make_unique<DepthTensor>(*this); }

void DepthModel::warm_up() const {
  const auto [height, width] = net().config().resize.size;
  encode(image::make_image(width, height, 3));
}

std::shared_ptr<const ImageEncoding> DepthModel::encode(const image::ImageView& photo) const {
  auto encoding = std::make_shared<DepthEncoding>();
  encoding->width = photo.width();
  encoding->height = photo.height();
  encoding->map = run_session(prepared(photo))[0].tensor.squeeze(0);
  return encoding;
}

Tensor DepthModel::prepared(const image::ImageView& photo) const {
  image::EvalTransform transform = this->transform();
  transform.processor->size = models::dense_input_size(net().config(), photo.height(), photo.width());
  return image::apply(photo, transform).unsqueeze(0);
}

Tensor DepthModel::depth(const ImageEncoding& encoding, int64_t height, int64_t width) const {
  return image::resize_plane(static_cast<const DepthEncoding&>(encoding).map, height, width);
}

Family depth_family() {
  return {.name = "depth", .recognises = models::is_depth_estimator, .load = load_as<DepthModel>};
}

}  // namespace vitrail::tasks
