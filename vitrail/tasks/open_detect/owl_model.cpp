// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tasks/open_detect/owl_model.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "vitrail/image/square_transform.h"
#include "vitrail/models/dense/outer_layers.h"
#include "vitrail/pipeline/prediction_json_internal.h"
#include "vitrail/tasks/model_facts_internal.h"

namespace vitrail::tasks {
namespace {

constexpr const char* kNominalLabel = "a photo";

class OwlTensors : public Request {
 public:
  explicit OwlTensors(const models::OwlConfig& config)
      : patches_(config.grid[0] * config.grid[1]), dim_(config.text_dim) {}

  void compute(Item& item, const ImageEncoding* encoding, const ProgressCallback& /*progress*/) const override {
    const models::OwlOutput& patches = static_cast<const OwlEncoding&>(*encoding).patches;
    item.results = {{patches.class_embeds.squeeze(0), patches.boxes.squeeze(0)}};
  }
  std::vector<Output> outputs() const override {
    return {{"class_embeds", {patches_, dim_}}, {"pred_boxes", {patches_, 4}}};
  }
  Tensor array(const Item& item, size_t output) const override { return item.results[0][output]; }
  std::string json(const Item& item) const override {
    return failure_json(item.name, "class_embeds and pred_boxes are arrays");
  }

 private:
  int64_t patches_, dim_;
};

// The outputs have the names of transformers.
infer::NamedTensors named_outputs(const models::OwlOutput& output) {
  infer::NamedTensors named{{"class_embeds", output.class_embeds},
                            {"logit_shift", output.logit_shift},
                            {"logit_scale", output.logit_scale},
                            {"pred_boxes", output.boxes}};
  if (output.objectness.defined()) named.push_back({"objectness_logits", output.objectness});
  return named;
}

models::OwlOutput output_of(const infer::NamedTensors& named) {
  return {named[0].tensor, named[1].tensor, named[2].tensor, named[3].tensor,
          named.size() > 4 ? named[4].tensor : Tensor()};
}

using Corners = std::array<float, 4>;  // left, top, right, bottom

Corners corners_of(const float* box) {
  return {box[0] - box[2] / 2, box[1] - box[3] / 2, box[0] + box[2] / 2, box[1] + box[3] / 2};
}

float area_of(const Corners& box) { return (box[2] - box[0]) * (box[3] - box[1]); }

// Intersection over union; `generalized` (Rezatofighi et al. 2019) also tells apart boxes that do not overlap.
float overlap_of(const Corners& a, const Corners& b, bool generalized) {
  const auto clipped = [](const Corners& box) {
    return std::max(0.0F, box[2] - box[0]) * std::max(0.0F, box[3] - box[1]);
  };
  const float both = clipped({std::max(a[0], b[0]), std::max(a[1], b[1]), std::min(a[2], b[2]), std::min(a[3], b[3])});
  const float either = area_of(a) + area_of(b) - both;
  if (!generalized) return both / either;
  const float around =
      clipped({std::min(a[0], b[0]), std::min(a[1], b[1]), std::max(a[2], b[2]), std::max(a[3], b[3])});
  return both / either - (around - either) / around;
}

std::vector<float> overlaps_of(const Corners& box, const Tensor& boxes) {
  std::vector<float> overlaps;
  for (const bool generalized : {false, true}) {
    overlaps.clear();
    for (int64_t i = 0; i < boxes.numel() / 4; ++i)
      overlaps.push_back(overlap_of(box, corners_of(boxes.data<float>() + 4 * i), generalized));
    if (std::ranges::any_of(overlaps, [](float overlap) { return overlap != 0; })) break;
  }
  return overlaps;
}

// The patch whose embedding is least like the mean of all among those with at least 0.8 of the best overlap.
int64_t distinct_patch(const Corners& box, const models::OwlOutput& patches) {
  constexpr float kShareOfBest = 0.8F;
  const std::vector<float> overlaps = overlaps_of(box, patches.boxes);
  const float enough = std::ranges::max(overlaps) * kShareOfBest;
  const int64_t count = patches.class_embeds.size(1), dim = patches.class_embeds.size(2);
  const float* const embeddings = patches.class_embeds.data<float>();
  std::vector<double> mean(static_cast<size_t>(dim));
  for (int64_t i = 0; i < count * dim; ++i)
    mean[static_cast<size_t>(i % dim)] += static_cast<double>(embeddings[i]) / static_cast<double>(count);
  // Where the best overlap is below 0, none is enough: the best one is taken.
  int64_t chosen = std::ranges::max_element(overlaps) - overlaps.begin();
  double lowest = INFINITY;
  for (int64_t i = 0; i < count; ++i) {
    if (overlaps[static_cast<size_t>(i)] < enough) continue;
    double similarity = 0;
    for (int64_t c = 0; c < dim; ++c)
      similarity += mean[static_cast<size_t>(c)] * static_cast<double>(embeddings[i * dim + c]);
    if (similarity >= lowest) continue;
    lowest = similarity;
    chosen = i;
  }
  return chosen;
}

}  // namespace

size_t OwlEncoding::bytes() const {
  int64_t values = 0;
  for (const infer::NamedTensors named = named_outputs(patches); const auto& [name, tensor] : named)
    values += tensor.numel();
  return static_cast<size_t>(values) * sizeof(float);
}

struct OwlModel::Whole {
  models::OwlNetwork module;
  std::unique_ptr<infer::FunctionSession> session = {};

  infer::NamedTensors forward(const infer::NamedTensors& in) const {
    const models::OwlOutput output = module.forward(in[0].tensor);
    infer::NamedTensors named{{"logits", models::owl_logits(output, in[1].tensor)}, {"pred_boxes", output.boxes}};
    if (output.objectness.defined()) named.push_back({"objectness_logits", output.objectness});
    return named;
  }
};

OwlModel::OwlModel(const models::ModelFiles& files, const OpenOptions& options)
    : threads_(require_no_others(options, "OWLv2 and OWL-ViT").model.threads),
      precision_(options.model.precision.value_or(kernels::Precision::fp32)),
      files_(models::open_owl(files)),
      towers_(files_.towers, {.threads = threads_, .precision = precision_}),
      heads_(models::build_owl_heads(files_)) {
  session_ = std::make_unique<infer::FunctionSession>(
      heads_, [this](const infer::NamedTensors& in) { return named_outputs(heads_.forward(in[0].tensor)); },
      infer::FunctionOptions{
          .threads = threads_, .precision = precision_, .excluded_layers = models::outer_layers(heads_)});
}

OwlModel::~OwlModel() = default;

// The label is embedded at once: inputs_of() may run in a trace, which is of the network alone.
std::optional<Network> OwlModel::network() const {
  std::call_once(whole_once_, [&] {
    auto whole = std::make_unique<Whole>(Whole{models::build_owl_network(files_)});
    whole->session = std::make_unique<infer::FunctionSession>(
        whole->module, [whole = whole.get()](const infer::NamedTensors& in) { return whole->forward(in); },
        infer::FunctionOptions{
            .threads = threads_, .precision = precision_, .excluded_layers = models::outer_layers(whole->module)});
    whole_ = std::move(whole);
  });
  const models::VisionTransformerConfig& vit = files_.towers.config.vit;
  const Tensor query = embed_labels({kNominalLabel}, {}).unsqueeze(0);
  return Network{.module = whole_->module,
                 .forward = [this](const infer::NamedTensors& in) { return whole_->forward(in); },
                 .session = *whole_->session,
                 .inputs = {{"images", Tensor::empty({1, vit.in_chans, vit.img_size[0], vit.img_size[1]}, DType::f32,
                                                     Device::meta)},
                            {"queries", Tensor::empty({1, 1, files_.config.text_dim}, DType::f32, Device::meta)}},
                 .pixels = &files_.towers.config.preprocessing,
                 .inputs_of = [this, query](const image::ImageView& photo) -> infer::NamedTensors {
                   return {{"images", prepared(photo)}, {"queries", query}};
                 },
                 .options = {{"labels", kNominalLabel}},
                 .key_map = files_.key_map,
                 .config_json = files_.config_json,
                 .preprocessor_json = files_.preprocessor_json};
}

std::string OwlModel::config() const {
  return pipeline::json_line(
      {{"architecture", files_.config.architecture}, {"image_size", files_.towers.config.vit.img_size}});
}

std::string OwlModel::facts() const {
  const models::VisionTransformerConfig& vit = files_.towers.config.vit;
  return facts_json({.architecture = files_.config.architecture,
                     .image_size = vit.img_size,
                     .depth = vit.depth,
                     .heads = vit.num_heads,
                     .dim = vit.embed_dim,
                     .precision = precision_});
}

std::unique_ptr<Request> OwlModel::tensors() const { return std::make_unique<OwlTensors>(files_.config); }

void OwlModel::warm_up() const { scores(*encode(image::make_image(64, 64, 3)), embed_labels({kNominalLabel}, {})); }

std::shared_ptr<const ImageEncoding> OwlModel::encode(const image::ImageView& photo) const {
  auto encoding = std::make_shared<OwlEncoding>();
  encoding->width = photo.width();
  encoding->height = photo.height();
  const infer::Session& tower = towers_.images().session();
  const infer::Request all_tokens = towers_.images().request_of({.tokens = infer::Tokens::all});
  encoding->patches = output_of(session_->run({{"tokens", tower.run(prepared(photo), all_tokens)[0]}}));
  require_finite("pred_boxes", encoding->patches.boxes);
  require_finite("class_embeds", encoding->patches.class_embeds);
  return encoding;
}

Tensor OwlModel::prepared(const image::ImageView& photo) const {
  if (!files_.config.pads) return towers_.images().preprocess({&photo, 1});
  return image::apply_to_square(photo, towers_.images().transform()).unsqueeze(0);
}

std::array<float, 2> OwlModel::extent_of(const ImageEncoding& encoding) const {
  const auto width = static_cast<float>(encoding.width), height = static_cast<float>(encoding.height);
  if (!files_.config.pads) return {width, height};
  return {std::max(width, height), std::max(width, height)};
}

Tensor OwlModel::embed_labels(const std::vector<std::string>& labels, const std::vector<std::string>& templates,
                              const ProgressCallback& progress) const {
  return towers_.embed_labels(labels, templates, progress);
}

Tensor OwlModel::embed_example(const ImageEncoding& example, const std::optional<std::array<float, 4>>& box) const {
  const models::OwlOutput& patches = static_cast<const OwlEncoding&>(example).patches;
  int64_t patch = 0;
  if (box || !files_.config.objectness) {
    const auto [width, height] = extent_of(example);
    Corners corners{0, 0, 1, 1};
    if (box) corners = {(*box)[0] / width, (*box)[1] / height, (*box)[2] / width, (*box)[3] / height};
    patch = distinct_patch(corners, patches);
  } else {
    const float* const objectness = patches.objectness.data<float>();
    patch = std::max_element(objectness, objectness + patches.objectness.numel()) - objectness;
  }
  return patches.class_embeds.squeeze(0).narrow(0, patch, 1).clone();
}

OpenDetectionModel::Scores OwlModel::scores(const ImageEncoding& encoding, const Tensor& queries) const {
  const models::OwlOutput& patches = static_cast<const OwlEncoding&>(encoding).patches;
  const auto [width, height] = extent_of(encoding);
  Scores result{models::owl_logits(patches, queries.unsqueeze(0)).squeeze(0),
                Tensor::empty({patches.boxes.size(1), 4})};
  float* const scores = result.scores.data<float>();
  std::transform(scores, scores + result.scores.numel(), scores,
                 [](float logit) { return 1 / (1 + std::exp(-logit)); });
  require_finite("scores", result.scores);
  for (int64_t i = 0; i < result.boxes.size(0); ++i) {
    const Corners corners = corners_of(patches.boxes.data<float>() + 4 * i);
    float* const to = result.boxes.data<float>() + 4 * i;
    for (size_t side = 0; side < 4; ++side) to[side] = corners[side] * (side % 2 == 0 ? width : height);
  }
  return result;
}

Family owl_family() { return {.name = "owl", .recognises = models::is_owl, .load = load_as<OwlModel>}; }

}  // namespace vitrail::tasks
