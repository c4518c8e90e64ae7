// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/eomt/eomt.h"

#include <algorithm>
#include <limits>

#include "vitrail/base/error.h"
#include "vitrail/base/file_lookup_internal.h"
#include "vitrail/base/read_file.h"
#include "vitrail/models/config_formats_internal.h"
#include "vitrail/models/configured_files_internal.h"
#include "vitrail/models/derived_config_internal.h"
#include "vitrail/models/layer_configs_internal.h"
#include "vitrail/nn/trace.h"
#include "vitrail/ops/convolution.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/operation.h"
#include "vitrail/ops/resize.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::models {
namespace {

// The names of transformers, and those of the authors' code, whose backbone is timm's.  Files have tensors that the
// forward pass does not use.
std::string keys_of(const EomtConfig& config) {
  const VisionTransformerConfig& vit = config.backbone;
  const std::string block = R"~({"from": "layers\\.(\\d+)\\.)~", to = R"~(", "to": "backbone.blocks.$1.)~";
  std::string rules = R"~({"name": "eomt", "rules": [
    {"from": "criterion\\..*|rope_embeddings\\..*|embeddings\\.(?:position_ids|mask_token)", "drop": true},
    {"from": "(?:network\\.)?(?:attn_mask_probs|encoder\\.pixel_(?:mean|std))", "drop": true},
    {"from": "embeddings\\.cls_token", "to": "backbone.cls_token"},
    {"from": "embeddings\\.register_tokens", "to": "backbone.reg_token"},
    {"from": "embeddings\\.position_embeddings\\.weight", "to": "backbone.pos_embed", "rearrange": "n d -> 1 n d"},
    {"from": "embeddings\\.patch_embeddings\\.(?:projection\\.)?(weight|bias)", "to": "backbone.patch_embed.proj.$1"},
    {"from": "layernorm\\.(weight|bias)", "to": "backbone.norm.$1"},
    {"from": "(?:network\\.encoder\\.backbone\\.)?((?:cls|reg)_token|pos_embed|(?:blocks|patch_embed|norm)\\..*)",
     "to": "backbone.$1"},
    {"from": "network\\.q\\.weight", "to": "query.weight"},
    {"from": "network\\.class_head\\.(.*)", "to": "class_predictor.$1"},
    {"from": "network\\.upscale\\.(\\d+)\\.norm\\.(.*)", "to": "upscale_block.block.$1.layernorm2d.$2"},
    {"from": "network\\.upscale\\.(\\d+\\..*)", "to": "upscale_block.block.$1"},
    {"from": "network\\.mask_head\\.0\\.(.*)", "to": "mask_head.fc1.$1"},
    {"from": "network\\.mask_head\\.2\\.(.*)", "to": "mask_head.fc2.$1"},
    {"from": "network\\.mask_head\\.4\\.(.*)", "to": "mask_head.fc3.$1"})~";
  const auto rule = [&](const std::string& from, const std::string& name, const std::string& part = "") {
    rules += ",\n    " + block + from + to + name + "\"" + (part.empty() ? "" : ", \"part\": [" + part + "]") + "}";
  };
  rule(R"~((norm[12]\\.(?:weight|bias)))~", "$2");
  rule(R"~(layer_scale([12])\\.lambda1)~", "ls$2.gamma");
  // Without a bias of k, those of q and v are parameters of their own.
  const bool separate = vit.attn_type == AttentionType::eva;
  if (separate) rule(R"~(attention\\.([qv])_proj\\.bias)~", "attn.$2_bias");
  for (const auto& [name, part] : {std::pair{"q", "0, 3"}, {"k", "1, 3"}, {"v", "2, 3"}})
    rule(str("attention\\\\.", name, R"~(_proj\\.(weight|bias))~"), "attn.qkv.$2", part);
  rule(R"~(attention\\.(?:out|o)_proj\\.(weight|bias))~", "attn.proj.$2");
  rule(R"~(mlp\\.(?:fc1|weights_in)\\.(weight|bias))~", "mlp.fc1.$2");
  rule(R"~(mlp\\.gate_proj\\.(weight|bias))~", "mlp.fc1.$2", "0, 2");
  rule(R"~(mlp\\.up_proj\\.(weight|bias))~", "mlp.fc1.$2", has_swiglu(vit) ? "1, 2" : "");
  rule(R"~(mlp\\.(?:fc2|weights_out|down_proj)\\.(weight|bias))~", "mlp.fc2.$2");
  return rules + "]}";
}

bool has_names_of_eomts_authors(const weights::Checkpoint& checkpoint) {
  return checkpoint.has("network.q.weight") && checkpoint.has("network.class_head.weight");
}

// Training lowers the probability that a block masks its attention from 1 to 0.
std::vector<bool> masked_blocks(const weights::Checkpoint& checkpoint, const EomtConfig& config) {
  for (const char* name : {"attn_mask_probs", "network.attn_mask_probs"}) {
    if (!checkpoint.has(name)) continue;
    const std::string where = checkpoint.path() + ": " + name;
    const Tensor probabilities = checkpoint.tensor(name).to(DType::f32).contiguous();
    if (!(probabilities.shape() == Shape{config.num_blocks}))
      throw Error(where, str("a value for each of ", config.num_blocks, " blocks (num_blocks)"),
                  str("shape ", probabilities.shape()));
    std::vector<bool> masked;
    for (const float p : std::span(probabilities.data<float>(), config.masked.size())) {
      if (p != 0 && p != 1) throw Error(where, "0 or 1 for each block: between them its attention is random", str(p));
      masked.push_back(p == 1);
    }
    return masked;
  }
  return config.masked;
}

// The bias that keeps queries, the first of `tokens`, from patches, the last ones, where their masks are not positive:
// masks [B, Q, P] → [B, 1, tokens, tokens].
Tensor attention_bias(const Tensor& masks, int64_t tokens) {
  const int64_t batch = masks.size(0), queries = masks.size(1), patches = masks.size(2);
  const auto kernel = [=](auto in, auto out) {
    auto* to = out[0].data;
    using T = std::remove_reference_t<decltype(*to)>;
    std::fill_n(to, batch * tokens * tokens, T(0));
    for (int64_t i = 0; i < batch * queries; ++i) {
      const auto* const from = in[0].data + i * patches;
      T* const row = to + (i / queries * tokens + i % queries + 1) * tokens - patches;
      for (int64_t p = 0; p < patches; ++p) {
        if (!(from[p] > 0)) row[p] = -std::numeric_limits<T>::infinity();
      }
    }
  };
  const auto onnx = [=](ops::OnnxValues& values, const auto& in, const auto&) {
    ops::OnnxGraph& graph = values.graph();
    const std::string seen = graph.node("Greater", {values.value_of(in[0]), graph.scalar(0)});
    const std::string hidden = graph.scalar(-std::numeric_limits<double>::infinity());
    const std::string rows = graph.node("Where", {seen, graph.scalar(0), hidden});  // [B, Q, P]
    const ops::Ints pads{0, 0, tokens - patches, 0, tokens - queries, 0};
    return graph.reshape(graph.node("Pad", {rows, graph.constant(pads)}), {-1, 1, tokens, tokens});
  };
  return ops::apply({.name = "mask_attention", .shape = {batch, 1, tokens, tokens}, .kernel = kernel, .onnx = onnx},
                    {masks});
}

Tensor repeated_for(const Tensor& tokens, int64_t batch) {
  return tokens.expand({batch, tokens.size(1), tokens.size(2)});
}

}  // namespace

EomtBackbone::EomtBackbone(const VisionTransformerConfig& config, const ParamSource& params)
    : VitBackbone(params.path()),
      config_(config),
      grid_(own_grid(checked(config))),
      patch_embed_(patch_embed_config(config), params.child("patch_embed")),
      blocks_("blocks"),
      norm_(config.embed_dim, config.norm_eps, params.child("norm")) {
  const int64_t dim = config.embed_dim;
  const TokenInit init = token_init_of(config);
  cls_token_ = params.get("cls_token", {1, 1, dim}, init.tokens);
  if (config.reg_tokens > 0) reg_token_ = params.get("reg_token", {1, config.reg_tokens, dim}, init.tokens);
  if (config.use_rot_pos_emb) {
    rope_.emplace(rotary_config(config), params.child("rope"));
  } else {
    pos_embed_ = params.get("pos_embed", {1, grid_[0] * grid_[1], dim}, init.positions);
  }
  for (int64_t i = 0; i < config.depth; ++i)
    blocks_.emplace_back(block_config(config, i), params.child("blocks").child(i));
}

Tensor EomtBackbone::embed(const Tensor& images) const {
  Tensor patches = patch_embed_.forward(images);
  if (pos_embed_.defined()) patches = ops::add(patches, pos_embed_);
  const Tensor prefix = reg_token_.defined() ? ops::cat({cls_token_, reg_token_}, 1) : cls_token_;
  return ops::cat({repeated_for(prefix, images.size(0)), patches}, 1);
}

Tensor EomtBackbone::run_block(int64_t index, const Tensor& x, const Tensor& bias) const {
  nn::AttentionOptions options{.bias = bias, .grid = grid_};
  if (rope_) options.rotary = rope_->tables(grid_, x.dtype()).front();
  const nn::Block& block = blocks_[index];
  return block.feed_forward(block.attend(x, options));
}

void EomtBackbone::visit(nn::Visitor& visitor) {
  visitor.parameter("cls_token", cls_token_);
  visitor.parameter("reg_token", reg_token_);
  visitor.parameter("pos_embed", pos_embed_);
  visitor.child("patch_embed", static_cast<nn::Module&>(patch_embed_));
  if (rope_) visitor.child("rope", rope_);
  visitor.child("blocks", static_cast<nn::Module&>(blocks_));
  visitor.child("norm", static_cast<nn::Module&>(norm_));
}

EomtScaleLayer::EomtScaleLayer(int64_t dim, kernels::Activation activation, const ParamSource& params)
    : Module(params.path()),
      activation_(activation),
      conv1_({.in_chans = dim, .out_chans = dim, .kernel = 2}, params.child("conv1")),
      conv2_(params.get("conv2.weight", {dim, 1, 3, 3}, nn::init::torch_default(9))),
      layernorm2d_(dim, 1e-6, params.child("layernorm2d")) {}

Tensor EomtScaleLayer::forward(const Tensor& x) const {
  const int64_t dim = conv2_.size(0);
  const Tensor large = conv1_.forward(x, activation_);
  const Tensor y = ops::depthwise_conv_3x3(large, conv2_.view({dim, 3, 3}), Tensor::zeros({dim}, conv2_.dtype()));
  return nn::traced(*this, layernorm2d_.forward(y));
}

void EomtScaleLayer::visit(nn::Visitor& visitor) {
  visitor.child("conv1", static_cast<nn::Module&>(conv1_));
  visitor.parameter("conv2.weight", conv2_);
  visitor.child("layernorm2d", static_cast<nn::Module&>(layernorm2d_));
}

Eomt::Eomt(const EomtConfig& config, const ParamSource& params)
    : Module(params.path()),
      config_(config),
      grid_(own_grid(config.backbone)),
      backbone_(config.backbone, params.child("backbone")),
      query_(params.get("query.weight", {config.num_queries, config.backbone.embed_dim}, nn::init::normal(1))),
      upscale_("upscale_block.block"),
      fc1_(config.backbone.embed_dim, config.backbone.embed_dim, true, params.child("mask_head").child("fc1")),
      fc2_(config.backbone.embed_dim, config.backbone.embed_dim, true, params.child("mask_head").child("fc2")),
      fc3_(config.backbone.embed_dim, config.backbone.embed_dim, true, params.child("mask_head").child("fc3")),
      class_predictor_(config.backbone.embed_dim, config.num_classes + 1, true, params.child("class_predictor")) {
  for (int64_t i = 0; i < config.num_upscale_blocks; ++i) {
    upscale_.emplace_back(config.backbone.embed_dim, config.backbone.act_layer,
                          params.child("upscale_block").child("block").child(i));
  }
}

Tensor Eomt::queries_of(const Tensor& normalized) const {
  return ops::contiguous(normalized.narrow(1, 0, config_.num_queries));
}

// The product of what the mask head makes of each query and of the enlarged map of the patches: [B, Q, h, w].
Tensor Eomt::masks_of(const Tensor& normalized) const {
  const int64_t batch = normalized.size(0), patches = grid_[0] * grid_[1], dim = normalized.size(2);
  const kernels::Activation activation = config_.backbone.act_layer;
  Tensor map = ops::contiguous(normalized.narrow(1, normalized.size(1) - patches, patches))
                   .view({batch, grid_[0], grid_[1], dim});
  for (int64_t i = 0; i < config_.num_upscale_blocks; ++i) map = upscale_[i].forward(map);
  const Tensor embedded = fc3_.forward(fc2_.forward(fc1_.forward(queries_of(normalized), activation), activation));
  const int64_t rows = map.size(1), columns = map.size(2);
  const Tensor logits = ops::matmul(embedded, map.view({batch, rows * columns, dim}).transpose(1, 2));
  return logits.view({batch, config_.num_queries, rows, columns});
}

EomtOutput Eomt::forward(const Tensor& images) const {
  const int64_t batch = images.size(0), first = config_.backbone.depth - config_.num_blocks;
  Tensor x = backbone_.embed(images), bias;
  for (int64_t i = 0; i < config_.backbone.depth; ++i) {
    if (i == first) x = ops::cat({repeated_for(query_.unsqueeze(0), batch), x}, 1);
    // As in transformers, a block without a mask of its own has that of the one before.
    if (i >= first && config_.masked[static_cast<size_t>(i - first)]) {
      const Tensor masks = ops::resize_bilinear(masks_of(backbone_.normalized(x)), grid_[0], grid_[1]);
      bias = attention_bias(masks.view({batch, config_.num_queries, grid_[0] * grid_[1]}), x.size(1));
    }
    x = backbone_.run_block(i, x, bias);
  }
  const Tensor normalized = backbone_.normalized(x);
  return {class_predictor_.forward(queries_of(normalized)), masks_of(normalized)};
}

void Eomt::visit(nn::Visitor& visitor) {
  visitor.child("backbone", static_cast<nn::Module&>(backbone_));
  visitor.parameter("query.weight", query_);
  visitor.child("upscale_block.block", static_cast<nn::Module&>(upscale_));
  visitor.child("mask_head.fc1", static_cast<nn::Module&>(fc1_));
  visitor.child("mask_head.fc2", static_cast<nn::Module&>(fc2_));
  visitor.child("mask_head.fc3", static_cast<nn::Module&>(fc3_));
  visitor.child("class_predictor", static_cast<nn::Module&>(class_predictor_));
}

bool is_eomt(const ModelFiles& files) {
  const weights::Checkpoint& first = files.first;
  return has_names_of_eomts_authors(first) ||
         (first.has("mask_head.fc3.weight") && first.has("class_predictor.weight"));
}

EomtFiles open_eomt(const ModelFiles& files) {
  auto checkpoint = files.checkpoint();
  if (!is_present(files.config))
    throw Error(files.weights.front().string(),
                "transformers' config.json and preprocessor_config.json beside it, as EoMT's weights do not tell the "
                "heads, the classes' names and the images' preparation",
                "none");
  const PreprocessorFile preprocessor = preprocessor_file(files.config.parent_path());
  const std::string text = read_regular_text_file(files.config);
  EomtConfig config = read_eomt_config(text, files.config.string(), preprocessor.text, preprocessor.path);
  config.masked = masked_blocks(*checkpoint, config);
  weights::KeyMap key_map = weights::KeyMap::parse(keys_of(config), "key map");
  return {std::move(checkpoint), std::move(key_map), std::move(config), text, preprocessor.text};
}

Eomt load_eomt(const EomtFiles& files) { return load_configured<Eomt>(files); }

}  // namespace vitrail::models
