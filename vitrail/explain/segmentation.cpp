// SPDX-License-Identifier: Apache-2.0
#include "vitrail/explain/segmentation.h"

#include <algorithm>

#include "vitrail/base/error.h"
#include "vitrail/explain/arrays_internal.h"
#include "vitrail/explain/html_internal.h"
#include "vitrail/explain/manifest_internal.h"
#include "vitrail/explain/model_tree_internal.h"
#include "vitrail/explain/segmentation_claims_internal.h"
#include "vitrail/image/resize_internal.h"
#include "vitrail/models/sam/sam.h"
#include "vitrail/nn/trace.h"
#include "vitrail/sam/image_input_internal.h"
#include "vitrail/sam/traced_pass.h"

namespace vitrail::explain {
namespace {

using Json = nlohmann::ordered_json;
using models::SamPoint;

constexpr int64_t kFrameSide = 256;  // pixels; the frame is drawn below the maps

// The points of a prompt in pixels of the encoder's input, and the names of their tokens.
struct PromptTokens {
  std::vector<double> coordinates = {};
  std::vector<SamPoint> kinds = {};
  Json names = Json::array();

  void add(double x, double y, SamPoint kind, const char* name) {
    coordinates.insert(coordinates.end(), {x, y});
    kinds.push_back(kind);
    names.push_back(name);
  }
};

PromptTokens prompt_tokens(const sam::Prompt& prompt, double scale_x, double scale_y) {
  PromptTokens tokens;
  for (const sam::Point& point : prompt.points)
    tokens.add(point.x * scale_x, point.y * scale_y, point.label == 1 ? SamPoint::inside : SamPoint::outside,
               point.label == 1 ? "point" : "outside");
  if (!prompt.box) {
    tokens.add(0, 0, SamPoint::padding, "padding");
    return tokens;
  }
  tokens.add(prompt.box->x0 * scale_x, prompt.box->y0 * scale_y, SamPoint::top_left, "corner");
  tokens.add(prompt.box->x1 * scale_x, prompt.box->y1 * scale_y, SamPoint::bottom_right, "corner");
  return tokens;
}

// The padded frame that the encoder sees, made smaller, as bytes.
void add_frame(const image::Image& resized, int64_t side, Arrays& arrays) {
  const auto scaled = [&](int64_t extent) { return std::max<int64_t>(1, extent * kFrameSide / side); };
  const image::Image small =
      image::resize(resized, scaled(resized.width), scaled(resized.height), image::Filter::bilinear);
  const Tensor frame = Tensor::zeros({1, 3, kFrameSide, kFrameSide});
  for (int64_t y = 0; y < small.height; ++y)
    for (int64_t x = 0; x < small.width; ++x)
      for (int64_t c = 0; c < 3; ++c)
        frame.data<float>()[(c * kFrameSide + y) * kFrameSide + x] =
            static_cast<float>(small.row(y)[x * small.channels + std::min(c, small.channels - 1)]) / 255;
  arrays.add_bytes("frame", frame, std::vector<ChannelScale>(3, {1.0 / 255, 0}));
}

// The names of the decoder's attention layers, in the order of the pass.
std::vector<std::string> attention_layers(const models::SamConfig& config) {
  std::vector<std::string> layers;
  for (int64_t i = 0; i < config.decoder.depth; ++i)
    for (const char* name : {"self_attn", "cross_attn_token_to_image", "cross_attn_image_to_token"})
      layers.push_back(str("mask_decoder.transformer.layers.", i, ".", name));
  layers.emplace_back("mask_decoder.transformer.final_attn_token_to_image");
  return layers;
}

Json model_json(const models::Sam& sam, const std::string& name, const PromptTokens& prompt,
                const std::map<std::string, Tensor>& values) {
  const models::SamConfig& config = sam.config();
  const int64_t masks = config.decoder.mask_tokens, tokens = 1 + masks + std::ssize(prompt.kinds);
  const int64_t grid = config.encoder.grid;
  Json special = Json::array({"iou"});
  for (int64_t i = 0; i < masks; ++i) special.push_back("mask");
  special.insert(special.end(), prompt.names.begin(), prompt.names.end());
  const std::vector<std::string> layers = attention_layers(config);
  Json shapes = Json::array();
  for (const std::string& layer : layers) {
    const Shape& shape = values.at(layer + ".weights").shape();
    shapes.push_back({{"name", layer}, {"weights", std::vector<int64_t>(shape.begin(), shape.end())}});
  }
  return {{"kind", "segmentation"},
          {"name", name},
          {"architecture", "sam"},
          {"parameters", sam.num_parameters()},
          {"width", config.decoder.dim},
          {"depth", layers.size()},
          {"layers", shapes},
          {"heads", config.decoder.num_heads},
          {"head_dim", config.decoder.dim / config.decoder.num_heads},
          {"channels", 3},
          {"input", {config.encoder.image_size(), config.encoder.image_size()}},
          {"image", {kFrameSide, kFrameSide}},
          {"patch", {config.encoder.patch_size, config.encoder.patch_size}},
          {"grid", {grid, grid}},
          {"patches", grid * grid},
          {"tokens", tokens + grid * grid},
          {"prefix", tokens},
          {"special", special},
          {"classes", 0},
          {"positions", "random"}};
}

// Arrays that the page draws; the upscaled embedding is large, and a small page does without.
void add_values(const models::SamConfig& config, const std::map<std::string, Tensor>& values, Detail detail,
                Arrays& arrays) {
  const auto add = [&](const std::string& name, Encoding encoding) {
    if (values.contains(name)) arrays.add(name, values.at(name), encoding);
  };
  const Encoding large = detail == Detail::full ? Encoding::f16 : Encoding::i8;
  add("image_encoder", large);
  add("prompt_encoder.sparse_embeddings", Encoding::f32);
  for (const std::string& layer : attention_layers(config)) {
    arrays.begin_blob();
    for (const char* value : {".q_proj", ".q", ".weights"}) {
      const auto found = values.find(layer + value);
      if (found == values.end()) continue;
      const bool is_map = found->second.numel() > (int64_t{1} << 14);
      if (is_map && std::string(value) != ".weights") continue;  // queries of the image
      arrays.add(layer + value, found->second, is_map ? large : Encoding::f32);
    }
  }
  arrays.begin_blob();
  for (int64_t i = 0; i < config.decoder.mask_tokens; ++i)
    add(str("mask_decoder.output_hypernetworks_mlps.", i), Encoding::f32);
  if (detail != Detail::small) add("mask_decoder.output_upscaling", large);
  add("low_res_masks", large);
  add("iou_predictions", Encoding::f32);
}

}  // namespace

LearningPage explain_segmentation(const models::Sam& sam, const SegmentedImage& image, const ExplainOptions& options) {
  const models::SamConfig& config = sam.config();
  if (!config.has_decoder) throw Error("explain", "a model with a mask decoder", "an image encoder alone");
  if (config.encoder.hiera) throw Error("explain", "a Segment Anything Model of the first generation", "SAM 2");
  sam::Prompt prompt = image.prompt;
  const auto width = static_cast<double>(image.photo.width), height = static_cast<double>(image.photo.height);
  if (prompt.points.empty() && !prompt.box) prompt.points.push_back({width / 2, height / 2, 1});
  if (prompt.mask_logits.defined()) throw Error("mask", "points or a box", "a mask");
  sam::check_prompt(prompt, image.photo.width, image.photo.height, config.mask_size(), image.name);
  const sam::InputFrame frame = sam::input_frame(config);
  const image::Image resized = frame.resized(image.photo);
  const Tensor input = Tensor::empty({1, 3, frame.size, frame.size});
  frame.write(resized, input.data<float>());
  const PromptTokens tokens =
      prompt_tokens(prompt, static_cast<double>(resized.width) / width, static_cast<double>(resized.height) / height);
  std::map<std::string, Tensor> values;
  {
    const nn::TraceScope scope([&](const std::string& name, const Tensor& value) {
      if (!name.starts_with("image_encoder.blocks")) values[name] = value;
    });
    const auto count = static_cast<int64_t>(tokens.kinds.size());
    const models::SamMasks masks =
        sam::traced_pass(sam, input, Tensor::from<double>({1, count, 2}, tokens.coordinates), tokens.kinds);
    values["low_res_masks"] = masks.logits;
    values["iou_predictions"] = masks.iou;
  }
  Json manifest = page_manifest(options);
  manifest["image"] = image_json(image.photo, image.name);
  manifest["model"] = model_json(sam, image.model, tokens, values);
  manifest["image"]["mean"] = {0.0};
  manifest["image"]["std"] = {1.0};
  Json points = Json::array();
  for (const sam::Point& point : prompt.points)
    points.push_back({{"x", point.x}, {"y", point.y}, {"label", point.label}});
  manifest["prompt"]["points"] = points;
  if (prompt.box) manifest["prompt"]["box"] = {prompt.box->x0, prompt.box->y0, prompt.box->x1, prompt.box->y1};
  add_model_tree(sam, manifest);
  Json claims = Json::array();
  for (const SegmentationClaim& claim : segmentation_claims()) {
    const Json measured = claim.measure({sam, values, std::ssize(tokens.kinds)});
    if (!measured.is_null()) claims.push_back({{"id", claim.id}, {"values", measured}});
  }
  Arrays arrays;
  add_frame(resized, frame.size, arrays);
  add_values(config, values, options.detail, arrays);
  LearningPage page;
  if (options.detail == Detail::small) page.left_out.emplace_back("mask_decoder.output_upscaling", "nothing");
  finish_page(image.name, manifest, claims, Json::object(), arrays, page);
  return page;
}

}  // namespace vitrail::explain
