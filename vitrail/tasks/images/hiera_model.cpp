// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tasks/images/hiera_model.h"

#include <nlohmann/json.hpp>

#include "vitrail/base/error.h"
#include "vitrail/kernels/rowwise/l2_normalize.h"
#include "vitrail/pipeline/class_names.h"
#include "vitrail/pipeline/prediction_json_internal.h"
#include "vitrail/tasks/model_facts_internal.h"

namespace vitrail::tasks {
namespace {

// The logits, if there are some, and the features.
class HieraTensors : public Request {
 public:
  explicit HieraTensors(const HieraModel& model) : model_(model) {}

  std::vector<infer::Request> passes() const override {
    return {{.output = model_.classifies() ? infer::Output::logits_and_features : infer::Output::features}};
  }
  std::vector<Output> outputs() const override {
    const Output embedding{"embedding", {model_.embedding_dim()}};
    if (!model_.classifies()) return {embedding};
    return {{"logits", {model_.classes().vit.num_classes}, true}, embedding};
  }
  Tensor array(const Item& item, size_t output) const override { return item.results[0][output]; }
  std::string json(const Item& item) const override {
    nlohmann::ordered_json object{{"path", item.name}};
    for (size_t i = 0; i < outputs().size(); ++i) {
      const Tensor values = array(item, i);
      object[outputs()[i].name] = std::vector<float>(values.data<float>(), values.data<float>() + values.numel());
    }
    return pipeline::json_line(object);
  }

 private:
  const HieraModel& model_;
};

// Rows of length 1 (infer::FeatureOptions::l2_normalize).
Tensor normalized(const Tensor& features) {
  const Tensor result = features.clone();
  kernels::normalize_rows(result.data<float>(), result.size(0), result.size(1));
  return result;
}

// Preprocessing decides the size of inputs; an image is not to blame for one that the model cannot take.
void require_input_size(const models::HieraClassifierConfig& config, const image::EvalTransform& transform,
                        const std::string& where) {
  const auto [height, width] = output_size(transform, 64, 64);
  const int64_t multiple = config.trunk.image_multiple();
  if (height % multiple == 0 && width % multiple == 0) return;
  throw Error(where, str("preprocessing to inputs whose sides ", multiple, " divides"), str(width, "×", height));
}

}  // namespace

HieraModel::HieraModel(const models::ModelFiles& files, const OpenOptions& options)
    : NetworkModel(files, options, "Hiera", models::open_hiera, models::load_hiera),
      class_names_(pipeline::class_names(classes())) {
  require_input_size(net().config(), transform(), files.path.string());
}

infer::NamedTensors HieraModel::forward(const infer::NamedTensors& inputs) const {
  const models::HieraOutput output = net().forward(inputs[0].tensor);
  if (!output.logits.defined()) return {{"features", output.features}};
  return {{"logits", output.logits}, {"features", output.features}};
}

Shape HieraModel::nominal_input() const {
  const auto [height, width] = output_size(transform(), classes().vit.img_size[1], classes().vit.img_size[0]);
  return {1, classes().vit.in_chans, height, width};
}

Shape HieraModel::input_shape() const {
  const Shape nominal = nominal_input();
  return {nominal[1], nominal[2], nominal[3]};
}

Tensor HieraModel::prepared(const image::ImageView& photo) const {
  return image::apply(photo, transform()).unsqueeze(0);
}

Tensor HieraModel::input_of(const image::Image& photo) const { return image::apply(photo, transform()); }

image::ColorMode HieraModel::color_mode() const { return infer::color_mode_of(classes().vit.in_chans); }

std::vector<Tensor> HieraModel::run(const Tensor& inputs, const infer::Request& pass) const {
  const infer::FeatureOptions& asked = pass.features;
  const bool wants_features = pass.output != infer::Output::logits;
  const bool pooled =
      asked.tokens == infer::Tokens::pooled && asked.layers == std::vector<int64_t>{-1} && asked.final_norm;
  if (pass.output == infer::Output::attention || (wants_features && !pooled))
    throw Error("features", "the pooled ones of the last block, which Hiera has", "others");
  const infer::NamedTensors out = run_session(inputs);
  if (pass.output == infer::Output::logits) {
    if (!classifies()) throw Error("model", "a model with a classifier", "a model without a head (use embed)");
    return {out[0].tensor};
  }
  const Tensor features = asked.l2_normalize ? normalized(out.back().tensor) : out.back().tensor;
  if (pass.output == infer::Output::features) return {features};
  return {out[0].tensor, features};
}

std::string HieraModel::config() const {
  std::vector<int64_t> depths;
  for (const models::HieraStage& stage : net().config().trunk.stages) depths.push_back(stage.depth);
  return pipeline::json_line({{"architecture", classes().architecture},
                              {"image_size", {input_shape()[1], input_shape()[2]}},
                              {"depths", depths},
                              {"classes", classes().vit.num_classes}});
}

std::string HieraModel::facts() const {
  const models::HieraConfig& trunk = net().config().trunk;
  int64_t depth = 0;
  for (const models::HieraStage& stage : trunk.stages) depth += stage.depth;
  return facts_json({.architecture = classes().architecture,
                     .image_size = {input_shape()[1], input_shape()[2]},
                     .depth = depth,
                     .heads = trunk.stages.back().num_heads,
                     .dim = embedding_dim(),
                     .classes = classes().vit.num_classes,
                     .precision = precision()});
}

std::unique_ptr<Request> HieraModel::tensors() const { return std::make_unique<HieraTensors>(*this); }

void HieraModel::warm_up() const { run_session(Tensor::zeros(nominal_input())); }

Family hiera_family() { return {.name = "hiera", .recognises = models::is_hiera, .load = load_as<HieraModel>}; }

}  // namespace vitrail::tasks
