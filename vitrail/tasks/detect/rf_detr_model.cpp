// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tasks/detect/rf_detr_model.h"

#include <nlohmann/json.hpp>

#include "vitrail/models/rf_detr/box_operations.h"
#include "vitrail/pipeline/prediction_json_internal.h"
#include "vitrail/tasks/model_facts_internal.h"

namespace vitrail::tasks {

RfDetrModel::RfDetrModel(const models::ModelFiles& files, const OpenOptions& options)
    : NetworkModel(files, options, "RF-DETR or LW-DETR", models::open_rf_detr, models::load_rf_detr) {}

// The outputs have the names of transformers.
infer::NamedTensors RfDetrModel::forward(const infer::NamedTensors& inputs) const {
  const models::RfDetrOutput output = net().forward(inputs[0].tensor);
  infer::NamedTensors named{{"logits", output.logits}, {"pred_boxes", output.boxes}};
  if (output.masks.defined()) named.push_back({"pred_masks", output.masks});
  return named;
}

std::optional<Network> RfDetrModel::network() const {
  std::optional<Network> network = NetworkModel::network();
  network->any_size = false;
  network->unordered_queries = true;  // in the order of the proposals' scores
  return network;
}

Shape RfDetrModel::nominal_input() const {
  const models::RfDetrConfig& config = net().config();
  return {1, config.backbone.vit.in_chans, config.side(), config.side()};
}

std::string RfDetrModel::config() const {
  const models::RfDetrConfig& model = net().config();
  return pipeline::json_line({{"architecture", model.architecture},
                              {"image_size", {model.side(), model.side()}},
                              {"queries", model.num_queries},
                              {"classes", model.num_classes()}});
}

std::string RfDetrModel::facts() const {
  const models::RfDetrConfig& model = net().config();
  return facts_json({.architecture = model.architecture,
                     .image_size = {model.side(), model.side()},
                     .depth = model.backbone.vit.depth,
                     .heads = model.backbone.vit.num_heads,
                     .dim = model.backbone.vit.embed_dim,
                     .classes = model.num_classes(),
                     .precision = precision()});
}

std::unique_ptr<Request> RfDetrModel::tensors() const {
  const models::RfDetrConfig& config = net().config();
  return query_tensors(config.num_queries, config.num_classes(), config.mask_side());
}

void RfDetrModel::warm_up() const { encode(image::make_image(net().config().side(), net().config().side(), 3)); }

std::shared_ptr<const ImageEncoding> RfDetrModel::encode(const image::ImageView& photo) const {
  return query_encoding(photo, run_session(prepared(photo)));
}

Tensor RfDetrModel::prepared(const image::ImageView& photo) const {
  image::EvalTransform transform = this->transform();
  transform.processor->antialias = false;  // where floats are resized
  return image::apply(photo, transform).unsqueeze(0);
}

Detections RfDetrModel::detections(const ImageEncoding& encoding, float threshold) const {
  const auto& of_image = static_cast<const QueryEncoding&>(encoding);
  Detections found;
  for (const auto& [query, index, score] : models::best_classes(of_image.logits, net().config().max_objects)) {
    if (score <= threshold) break;
    found.push_back({.label = net().config().labels[static_cast<size_t>(index)],
                     .index = index,
                     .score = score,
                     .box = corners_of(of_image, query),
                     .query = query});
  }
  return found;
}

void RfDetrModel::add_masks(const ImageEncoding& encoding, Detections& detections) const {
  if (!gives_masks()) return;
  for (Detection& each : detections) each.mask = mask_of(static_cast<const QueryEncoding&>(encoding), each.query);
}

Family rf_detr_family() { return {.name = "rf_detr", .recognises = models::is_rf_detr, .load = load_as<RfDetrModel>}; }

}  // namespace vitrail::tasks
