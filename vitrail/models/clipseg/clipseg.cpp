// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/clipseg/clipseg.h"

#include <algorithm>
#include <cmath>

#include "vitrail/base/error.h"
#include "vitrail/base/file_lookup_internal.h"
#include "vitrail/base/read_file.h"
#include "vitrail/base/text.h"
#include "vitrail/models/config_formats_internal.h"
#include "vitrail/models/dense/config_internal.h"
#include "vitrail/models/json_fields_internal.h"
#include "vitrail/nn/trace.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/resize.h"
#include "vitrail/ops/tokens.h"
#include "vitrail/weights/checkpoint_params_internal.h"

namespace vitrail::models {
namespace {

using kernels::Activation;

constexpr int64_t kRefinedKernel = 4;  // two such convolutions enlarge to patches

constexpr const char* kTower = R"~("base": "huggingface_clip", "base_prefix": ["clip\\.", "vision."], "rules": [)~";
constexpr const char* kNoTower = R"~("rules": [{"from": "clip\\..*", "drop": true},)~";

weights::KeyMap key_map_with(const std::string& towers) {
  const std::string json = R"~({"name": "huggingface_clipseg", )~" + towers + R"~(
  {"from": "(decoder\\.layers\\.\\d+)\\.layer_norm(\\d)\\.(.*)", "to": "$1.norm$2.$3"},
  {"from": "(decoder\\.layers\\.\\d+)\\.self_attn\\.q_proj\\.(.*)", "to": "$1.attn.qkv.$2", "part": [0, 3]},
  {"from": "(decoder\\.layers\\.\\d+)\\.self_attn\\.k_proj\\.(.*)", "to": "$1.attn.qkv.$2", "part": [1, 3]},
  {"from": "(decoder\\.layers\\.\\d+)\\.self_attn\\.v_proj\\.(.*)", "to": "$1.attn.qkv.$2", "part": [2, 3]},
  {"from": "(decoder\\.layers\\.\\d+)\\.self_attn\\.out_proj\\.(.*)", "to": "$1.attn.proj.$2"},
  {"from": "(decoder\\.transposed_convolution)\\.(weight|bias)", "to": "$1.4.$2"},
  {"from": "(decoder\\..*)", "to": "$1"}]})~";
  return weights::KeyMap::parse(json, "key map");
}

nn::BlockConfig block_config(const ClipSegConfig& config) {
  nn::BlockConfig block{.mlp_hidden = config.mlp_hidden,
                        .activation = Activation::relu,
                        .norm_eps = config.norm_eps,
                        .norm_first = false};
  block.attention.dim = config.dim;
  block.attention.num_heads = config.num_heads;
  block.attention.qkv_bias = true;
  return block;
}

// The input is a square that patches fill.
void check_input(const ModelConfig& clip, const std::string& where) {
  const auto& size = clip.preprocessing.input_size;
  const int64_t patch = clip.vit.patch_size[0];
  if (!size || (*size)[0] != (*size)[1] || (*size)[0] % patch != 0 || (*size)[0] < patch)
    throw Error(where, str("the size of a square of whole patches of ", patch, " pixels"),
                size ? str((*size)[0], "×", (*size)[1]) : "none");
}

ClipSegConfig read_decoder_config(const JsonFields& file, const ModelConfig& clip) {
  ClipSegConfig config;
  JsonFields::assign(config.layers, file.integers("extract_layers"));
  const int64_t depth = clip.vit.depth, count = std::ssize(config.layers);
  const bool ascends =
      std::ranges::is_sorted(config.layers) && std::ranges::adjacent_find(config.layers) == config.layers.end();
  if (count < 1 || !ascends || config.layers.front() < 0 || config.layers.back() >= depth)
    throw Error(file.path("extract_layers"), str("blocks from 0 to ", depth - 1, " in ascending order"),
                join(config.layers));
  std::ranges::reverse(config.layers);
  config.vision_dim = clip.vit.embed_dim;
  config.text_dim = clip.text->output_dim;
  config.patch_size = clip.vit.patch_size[0];
  config.norm_eps = clip.vit.norm_eps;
  config.dim = positive_dim(file, "reduce_dim", config.dim);
  config.num_heads = positive_dim(file, "decoder_num_attention_heads", config.num_heads);
  if (config.dim % config.num_heads != 0)
    throw Error(file.path("decoder_num_attention_heads"), str("a divisor of reduce_dim ", config.dim),
                str(config.num_heads));
  config.mlp_hidden = positive_dim(file, "decoder_intermediate_size", config.mlp_hidden);
  config.conditional_layer = file.integer("conditional_layer").value_or(0);
  if (config.conditional_layer < 0 || config.conditional_layer >= count)
    throw Error(file.path("conditional_layer"), str("0 to ", count - 1), str(config.conditional_layer));
  config.refined = file.boolean("use_complex_transposed_convolution").value_or(false);
  if (config.refined && (config.patch_size != kRefinedKernel * kRefinedKernel || config.dim < 2))
    throw Error(file.path("use_complex_transposed_convolution"), "a patch_size of 16 and a reduce_dim of at least 2",
                str(config.patch_size, " and ", config.dim));
  return config;
}

nn::ConvTranspose2d last_convolution(const ClipSegConfig& config, const ParamSource& params) {
  const int64_t kernel = config.refined ? kRefinedKernel : config.patch_size;
  return {{.in_chans = config.refined ? config.dim / 2 : config.dim, .out_chans = 1, .kernel = kernel}, params};
}

}  // namespace

ClipSegDecoder::ClipSegDecoder(const ClipSegConfig& config, const ParamSource& params)
    : Module(params.path()),
      config_(config),
      film_mul_(config.text_dim, config.dim, true, params.child("film_mul")),
      film_add_(config.text_dim, config.dim, true, params.child("film_add")),
      reduces_(params.child("reduces").path()),
      layers_(params.child("layers").path()),
      last_(last_convolution(config, params.child("transposed_convolution").child(4))) {
  for (int64_t i = 0; i < std::ssize(config.layers); ++i) {
    reduces_.emplace_back(config.vision_dim, config.dim, true, params.child("reduces").child(i));
    layers_.emplace_back(block_config(config), params.child("layers").child(i));
  }
  if (!config.refined) return;
  const ParamSource convolutions = params.child("transposed_convolution");
  convolution_.emplace(nn::Conv2dConfig{.in_chans = config.dim, .out_chans = config.dim, .kernel = 3},
                       convolutions.child(0));
  middle_.emplace(nn::Conv2dConfig{.in_chans = config.dim, .out_chans = config.dim / 2, .kernel = kRefinedKernel},
                  convolutions.child(2));
}

Tensor ClipSegDecoder::enlarged(const Tensor& map) const {
  const Tensor large =
      config_.refined ? middle_->forward(convolution_->forward(map, Activation::relu), Activation::relu) : map;
  return last_.forward(large).squeeze(3);
}

Tensor ClipSegDecoder::forward(const Tensor& tokens, const Tensor& text) const {
  Tensor x;
  for (size_t i = 0; i < layers_.size(); ++i) {
    const Tensor reduced = reduces_[i].forward(ops::contiguous(tokens.select(1, static_cast<int64_t>(i))));
    x = x.defined() ? ops::add(reduced, x) : reduced;
    if (static_cast<int64_t>(i) == config_.conditional_layer)  // FiLM (Perez et al. 2018)
      x = ops::add(ops::mul(x, film_mul_.forward(text).unsqueeze(1)), film_add_.forward(text).unsqueeze(1));
    x = layers_[i].forward(x);
  }
  const int64_t patches = x.size(1) - 1, side = std::lround(std::sqrt(static_cast<double>(patches)));
  return nn::traced(*this,
                    enlarged(ops::contiguous(x.narrow(1, 1, patches)).view({x.size(0), side, side, config_.dim})));
}

void ClipSegDecoder::visit(nn::Visitor& visitor) {
  visitor.child("film_mul", static_cast<nn::Module&>(film_mul_));
  visitor.child("film_add", static_cast<nn::Module&>(film_add_));
  if (convolution_) visitor.child("transposed_convolution.0", convolution_);
  if (middle_) visitor.child("transposed_convolution.2", middle_);
  visitor.child("transposed_convolution.4", static_cast<nn::Module&>(last_));
  visitor.child("reduces", static_cast<nn::Module&>(reduces_));
  visitor.child("layers", static_cast<nn::Module&>(layers_));
}

ClipSegNetwork::ClipSegNetwork(const ClipSegConfig& config, const VisionTransformerConfig& vision,
                               const ParamSource& params)
    : Module(params.path()),
      layers_(config.layers),
      vision_(vision, params.child("vision")),
      decoder_(config, params.child("decoder")) {}

Tensor ClipSegNetwork::forward(const Tensor& images, const Tensor& text) const {
  std::vector<Tensor> tokens;
  for (const Tensor& each : vision_.intermediates(images, layers_, false)) tokens.push_back(each.unsqueeze(1));
  return decoder_.forward(ops::cat(tokens, 1), text);
}

void ClipSegNetwork::visit(nn::Visitor& visitor) {
  visitor.child("vision", static_cast<nn::Module&>(vision_));
  visitor.child("decoder", static_cast<nn::Module&>(decoder_));
}

Tensor clipseg_probabilities(const Tensor& logits, int64_t height, int64_t width) {
  Tensor map = ops::resize_bilinear(logits, height, width);
  std::transform(map.data<float>(), map.data<float>() + map.numel(), map.data<float>(),
                 [](float logit) { return 1 / (1 + std::exp(-logit)); });
  return map;
}

bool is_clipseg(const ModelFiles& files) {
  return files.first.has("decoder.film_mul.weight") && files.first.has("decoder.reduces.0.weight");
}

ClipSegFiles open_clipseg(const ModelFiles& files) {
  if (!is_present(files.config))
    throw Error(files.weights.front().string(), "a config.json of transformers beside it", "none");
  const std::string path = files.config.string();
  const std::string text = read_regular_text_file(files.config);
  Json json = parse_json(text, path);
  const std::string type = JsonFields(json, path).text("model_type").value_or("");
  if (type != "clipseg") throw Error(path + ": model_type", "clipseg", "\"" + type.substr(0, 80) + "\"");
  json["model_type"] = "clip";  // CLIPSeg has its towers and their defaults
  const PreprocessorFile preprocessor = preprocessor_file(files.config.parent_path());
  const Json processor = preprocessor.text.empty() ? Json() : parse_json(preprocessor.text, preprocessor.path);
  ModelConfig clip = read_huggingface_config(json, processor, path, preprocessor.path);
  check_input(clip, preprocessor.path + ": size");
  clip.vit.dynamic_img_size = true;  // images are larger than those that the positions are for
  ClipSegConfig config = read_decoder_config(JsonFields(json, path), clip);
  const auto towers = files.checkpoint();
  towers->strip_model_prefix();  // "clip."
  return {{files.checkpoint(), key_map_with(kTower), std::move(config), text, preprocessor.text},
          {std::move(clip), towers, weights::KeyMap::builtin("huggingface_clip"), files.weights.front().parent_path()}};
}

ClipSegDecoder build_clipseg_decoder(const ClipSegFiles& files) {
  weights::CheckpointParams params(files.checkpoint, key_map_with(kNoTower));
  ClipSegDecoder decoder(files.config, ParamSource(params).child("decoder"));
  params.finish();
  return decoder;
}

ClipSegNetwork build_clipseg_network(const ClipSegFiles& files) {
  weights::CheckpointParams params(files.checkpoint, files.key_map);
  ClipSegNetwork network(files.config, files.towers.config.vit, ParamSource(params));
  params.finish();
  return network;
}

}  // namespace vitrail::models
