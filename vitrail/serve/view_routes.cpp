// SPDX-License-Identifier: Apache-2.0
// The routes that show what a model sees: /v1/attention and /v1/pca, as maps in JSON or as PNG.
#include "vitrail/pipeline/attention_view.h"
#include "vitrail/pipeline/pca_view.h"
#include "vitrail/serve/image_job_internal.h"
#include "vitrail/serve/png_response_internal.h"
#include "vitrail/serve/response_size_internal.h"
#include "vitrail/serve/routes_internal.h"

namespace vitrail::serve {
namespace {

using nlohmann::ordered_json;

constexpr int64_t kMaxWeights = int64_t{1} << 28;  // attention weights of a request: 1 GiB

std::vector<float> values_of(const Tensor& tensor) {
  const Tensor values = tensor.contiguous();
  return {values.data<float>(), values.data<float>() + values.numel()};
}

// What the maps cover: the size of the image, and the part of it that the model sees.
ordered_json region_json(const Model& model, const ImageOutcome& outcome) {
  const image::Region region = visible_region(model.transform(), outcome.width, outcome.height);
  return {{"width", outcome.width}, {"height", outcome.height}, {"left", region.left},
          {"top", region.top},      {"right", region.right},    {"bottom", region.bottom}};
}

pipeline::AttendedImage attended(const Model& model, const ImageOutcome& outcome) {
  return {.name = outcome.name,
          .width = outcome.width,
          .height = outcome.height,
          .size = output_size(model.transform(), outcome.width, outcome.height),
          .weights = [&] {
            std::vector<Tensor> weights;
            for (const Tensor& block : outcome.results[0]) weights.push_back(block.unsqueeze(0));
            return weights;
          }()};
}

HttpResponse attention_png(const Model& model, const pipeline::AttentionOptions& options, const ImageOutcome& outcome) {
  require_result(outcome);
  const Tensor logits = outcome.results.size() > 1 ? outcome.results[1][0] : Tensor();
  return png_response(pipeline::attention_figure(model, options, outcome.image, attended(model, outcome), logits));
}

ordered_json attention_json(const Model& model, const pipeline::AttentionOptions& options,
                            const ImageOutcome& outcome) {
  const pipeline::AttentionMaps attention = pipeline::attention_maps(model, options, attended(model, outcome));
  ordered_json maps = ordered_json::array();
  for (const auto& [label, map] : attention.maps) maps.push_back({{"label", label}, {"values", values_of(map)}});
  const Tensor& first = attention.maps.front().map;
  return {{"path", outcome.name},
          {"attending", attention.attending},
          {"shape", {first.size(0), first.size(1)}},
          {"region", region_json(model, outcome)},
          {"maps", maps}};
}

// One PCA over the images that were decoded.
std::vector<analysis::PcaMaps> joint_maps(const std::vector<ImageOutcome>& outcomes,
                                          const analysis::Foreground& foreground) {
  std::vector<Tensor> grids;
  for (const ImageOutcome& outcome : outcomes) {
    if (outcome.failure.error.empty()) grids.push_back(outcome.results[0][0]);
  }
  if (grids.empty()) return {};
  return analysis::pca_maps(grids, foreground);
}

}  // namespace

void attention_route(const CallPointer& call) {
  RequestOptions& options = call->options();
  RequestImages input = take_images(call->request(), call->engine().options.limits, options);
  ImageJob job{.model = call->take_model(), .decode = {.apply_exif = options.flag("exif")}};
  pipeline::AttentionOptions attention;
  pipeline::describe_attention(options, attention);
  const bool png = wants_png(*call, input.single);
  options.require_all_taken();
  if (!attention.query.empty() && attention.query.size() != 2)
    throw Error("query", "X,Y in pixels", str(attention.query.size(), " values"));
  const Model& model = job.model->images();
  pipeline::check_attention(model, attention);
  job.keep_images = png;
  job.requests = {pipeline::attention_request(model, attention)};
  if (png && job.model->classifies()) job.requests.emplace_back();  // for the caption
  const auto& vit = model.config().vit;
  const int64_t tokens = job.model->image_tokens();
  check_response_size(static_cast<int64_t>(input.images.size()) * (job.requests[0].all_layers ? vit.depth : 1),
                      vit.num_heads * tokens * tokens, kMaxWeights);
  job.finish = [model_pointer = job.model, attention, png, single = input.single](std::vector<ImageOutcome>& outcomes) {
    const Model& images = model_pointer->images();
    if (png) return attention_png(images, attention, outcomes.front());
    return outcome_response(outcomes, single,
                            [&](const ImageOutcome& outcome) { return attention_json(images, attention, outcome); });
  };
  start_images(call, std::move(input.images), std::move(job));
}

void pca_route(const CallPointer& call) {
  RequestOptions& options = call->options();
  RequestImages input = take_images(call->request(), call->engine().options.limits, options);
  ImageJob job{.model = call->take_model(), .decode = {.apply_exif = options.flag("exif")}};
  const analysis::Foreground foreground =
      pipeline::foreground_from_name(options.text("foreground").value_or("none"), options.flag("invert"));
  const Model& model = job.model->images();
  const int64_t depth = model.config().vit.depth;
  int64_t layer = -1;
  options.integer("layer", layer, -depth, depth - 1);
  double opacity = 0.75;
  options.number("opacity", opacity, {0, 1});
  const bool final_norm = !options.flag("no-norm"), raw = options.flag("raw");
  const bool png = wants_png(*call, input.single);
  options.require_all_taken();
  job.keep_images = png;
  job.requests = {{.output = infer::Output::features,
                   .features = {.tokens = infer::Tokens::grid, .layers = {layer}, .final_norm = final_norm}}};
  job.finish = [=, model_pointer = job.model, single = input.single](std::vector<ImageOutcome>& outcomes) {
    if (single) require_result(outcomes.front());
    const Model& images = model_pointer->images();
    const std::vector<analysis::PcaMaps> maps = joint_maps(outcomes, foreground);
    if (png)
      return png_response(pipeline::pca_overlay(outcomes.front().image, maps.front(), opacity, images.transform()));
    size_t at = 0;
    return outcome_response(outcomes, single, [&](const ImageOutcome& outcome) {
      const analysis::PcaMaps& map = maps[at++];
      ordered_json object{{"path", outcome.name},
                          {"shape", {map.colors.size(0), map.colors.size(1), 3}},
                          {"region", region_json(images, outcome)},
                          {"colors", values_of(map.colors)}};
      if (raw) object["scores"] = values_of(map.scores);  // null in the background
      return object;
    });
  };
  start_images(call, std::move(input.images), std::move(job));
}

}  // namespace vitrail::serve
