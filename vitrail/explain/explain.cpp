// SPDX-License-Identifier: Apache-2.0
#include "vitrail/explain/explain.h"

#include <algorithm>

#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/explain/attention_values_internal.h"
#include "vitrail/explain/block_arrays_internal.h"
#include "vitrail/explain/claims_internal.h"
#include "vitrail/explain/comparison_internal.h"
#include "vitrail/explain/html_internal.h"
#include "vitrail/explain/manifest_internal.h"
#include "vitrail/explain/model_facts_internal.h"
#include "vitrail/explain/model_tree_internal.h"
#include "vitrail/explain/prediction_internal.h"
#include "vitrail/explain/texts_internal.h"
#include "vitrail/models/flops.h"
#include "vitrail/nn/mlp.h"
#include "vitrail/pipeline/class_names.h"

namespace vitrail::explain {
namespace {

using Json = nlohmann::ordered_json;
using models::GlobalPool;
using models::PositionEmbedding;
using models::VisionTransformerConfig;

const char* pool_name(GlobalPool pool) {
  switch (pool) {
    case GlobalPool::token:
      return "token";
    case GlobalPool::avg:
      return "avg";
    case GlobalPool::token_avg:
      return "token_avg";
    case GlobalPool::map:
      return "map";
    default:
      return "";
  }
}

const char* positions_name(const VisionTransformerConfig& config) {
  if (config.use_rot_pos_emb) return "rotary";
  switch (config.pos_embed) {
    case PositionEmbedding::learned:
      return "learned";
    case PositionEmbedding::sinusoidal:
      return "sinusoidal";
    case PositionEmbedding::sincos2d:
      return "sincos2d";
    default:
      return config.use_rel_pos_bias || config.use_shared_rel_pos_bias ? "relative" : "none";
  }
}

Json model_json(const std::string& name, const models::ModelConfig& config, const models::VisionTransformer& model,
                const Forward& forward) {
  const VisionTransformerConfig& vit = config.vit;
  const Tensor& images = forward.at("images");
  const std::array<int64_t, 2> grid = model.grid_of(images.size(2), images.size(3));
  const Tensor& q = forward.at(in_block(0, "attn.q"));
  const bool has_hidden = forward.has(in_block(0, "mlp.act"));
  return {{"name", name},
          {"architecture", config.architecture},
          {"parameters", model.num_parameters()},
          {"flops", models::forward_flops(model, images.shape())},
          {"width", vit.embed_dim},
          {"depth", vit.depth},
          {"heads", q.size(1)},
          {"head_dim", q.size(3)},
          {"scale", attention_scale(vit)},
          {"hidden", has_hidden ? Json(forward.at(in_block(0, "mlp.act")).size(2)) : Json()},
          {"channels", vit.in_chans},
          {"image", {images.size(2), images.size(3)}},
          {"patch", vit.patch_size},
          {"grid", grid},
          {"patches", grid[0] * grid[1]},
          {"tokens", forward.at("embedded").size(1)},
          {"first_input", vit.pre_norm ? "norm_pre" : "embedded"},
          {"prefix", model.num_prefix_tokens()},
          {"special", special_tokens(vit)},
          {"classes", vit.num_classes},
          {"pool", pool_name(vit.global_pool)},
          {"activation", nn::activation_text(vit.act_layer)},
          {"norm_eps", vit.norm_eps},
          {"positions", positions_name(vit)},
          {"norm_first", vit.norm_first},
          {"final_norm", vit.final_norm}};
}

const std::vector<std::string>& names_of(const Model& model, const ExplainOptions& options) {
  return options.labels.empty() || model.config().text ? model.class_names() : options.labels;
}

int64_t target_of(const Model& model, const ExplainOptions& options, const Tensor& logits) {
  if (!options.target.empty())
    return pipeline::class_index("class", options.target, names_of(model, options), model.config().vit.num_classes);
  const float* const values = logits.data<float>();
  return std::max_element(values, values + logits.numel()) - values;
}

struct Stored {
  Json derived;
  Storage storage;
};

// The best storage that is not too large: arrays have `common` already.
Stored add_within(const models::VisionTransformer& model, const Forward& forward, Detail detail,
                  const std::vector<ChannelScale>& pixels, const Arrays& common, size_t other_bytes, Arrays& arrays) {
  constexpr double kMinShare = 0.75 * 4 / 3;  // what gzip leaves, times what base64 adds
  Stored stored;
  for (const Storage& storage : storages(detail)) {
    arrays = common;
    stored = {add_forward(model, forward, storage, pixels, arrays), storage};
    const auto estimate = static_cast<size_t>(static_cast<double>(arrays.raw_bytes()) * kMinShare);
    if (other_bytes + estimate > max_bytes(detail)) continue;
    if (other_bytes + arrays.elements().size() <= max_bytes(detail)) break;
  }
  return stored;
}

}  // namespace

void check_explain(const Model& model, const ExplainOptions& options) {
  const bool is_dual = model.config().text.has_value();
  if (!options.target.empty()) models::require_classifier(model.config(), "class");
  if (!options.labels.empty() && !is_dual) {
    models::require_classifier(model.config(), "labels");
    if (std::ssize(options.labels) != model.config().vit.num_classes)
      throw Error("labels", str(model.config().vit.num_classes, " names of classes"), str(options.labels.size()));
  }
  if (!options.target.empty()) target_of(model, options, {});
}

LearningPage explain(const Model& model, const models::OpenedModel& opened, const ExplainedImage& image,
                     const ExplainOptions& options, const ProgressCallback& progress) {
  check_explain(model, options);
  if (opened.config.int8)
    throw Error(opened.checkpoint->path(), "weights in fp32 or 16 bits: the model that this one was converted from",
                "int8");
  const image::ImageView photo = image.photo;
  const Tensor input = model.preprocess({&photo, 1});
  models::VisionTransformer traced = models::build_model(opened);
  const auto run = [&] {
    const ComputeTeam team(model.session().threads());
    return run_forward(traced, input);
  };
  const Forward forward = run();
  Json manifest = page_manifest(options);
  manifest["image"] = image_json(image.photo, image.name);
  manifest["model"] = model_json(image.model, model.config(), traced, forward);
  manifest["image"]["mean"] = model.transform().mean;
  manifest["image"]["std"] = model.transform().std;
  Arrays common;
  add_head_statistics(forward, common);
  LearningPage page;
  if (!add_block_similarities(traced, forward, common)) page.left_out.emplace_back("explain.cka", "nothing");
  Json attributions, gradients;
  if (is_classifier(model.config().vit)) {
    const Tensor logits = forward.at("logits").contiguous();
    ClassSections sections = add_class_sections({.model = model,
                                                 .differentiable = traced,
                                                 .input = input,
                                                 .logits = logits,
                                                 .class_names = names_of(model, options),
                                                 .target = target_of(model, options, logits),
                                                 .all_methods = options.detail == Detail::full,
                                                 .progress = progress},
                                                common);
    manifest["prediction"] = std::move(sections.prediction);
    manifest["attributions"] = attributions = std::move(sections.attributions);
    manifest["gradients"] = gradients = std::move(sections.gradients);
    manifest["classes"] = std::move(sections.classes);
    page.left_out.insert(page.left_out.end(), sections.left_out.begin(), sections.left_out.end());
  }
  if (image.texts) manifest["texts"] = texts_json(*image.texts);
  if (image.compared) manifest["compared"] = add_comparison(model, forward, *image.compared, photo, common);
  add_model_tree(traced, manifest);
  const Json claims =
      measured_claims({model.config(), traced, forward, attributions, gradients, manifest.value("texts", Json())});
  Arrays arrays;
  const size_t other_bytes = page_html("", manifest, Arrays()).size();
  const Stored stored = add_within(traced, forward, options.detail, pixel_scales(model.transform(), input.size(1)),
                                   common, other_bytes, arrays);
  for (const auto& [what, kept] : left_out(stored.storage, forward.at("embedded").size(1), traced.config().depth))
    page.left_out.emplace_back(what, kept);
  finish_page(image.name, manifest, claims, stored.derived, arrays, page);
  return page;
}

}  // namespace vitrail::explain
