// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/rf_detr/rf_detr.h"

#include <algorithm>
#include <limits>

#include "vitrail/base/error.h"
#include "vitrail/base/file_lookup_internal.h"
#include "vitrail/base/read_file.h"
#include "vitrail/models/config_formats_internal.h"
#include "vitrail/models/configured_files_internal.h"
#include "vitrail/models/derived_config_internal.h"
#include "vitrail/models/layer_configs_internal.h"
#include "vitrail/models/rf_detr/authors_config_internal.h"
#include "vitrail/models/rf_detr/box_operations.h"
#include "vitrail/models/rf_detr/key_maps_internal.h"
#include "vitrail/nn/folded_batch_norm.h"
#include "vitrail/nn/positional_encoding.h"
#include "vitrail/nn/trace.h"
#include "vitrail/ops/activation.h"
#include "vitrail/ops/deformable_attention.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/embedding.h"
#include "vitrail/ops/operation.h"
#include "vitrail/ops/softmax.h"
#include "vitrail/ops/tokens.h"
#include "vitrail/ops/window.h"

namespace vitrail::models {
namespace {

constexpr double kMapNormEps = 1e-6, kQueryNormEps = 1e-5;
constexpr int64_t kWideMap = 512;  // channels above which a map becomes narrower before it becomes larger

// The windows of a square map.
struct Windows {
  int64_t count, side;

  Windows(int64_t patches, int64_t per_side) : count(per_side * per_side), side(patches / per_side) {}
  int64_t cells() const { return side * side; }
};

// A square box at each cell, [1, cells, 4], twice as large in each map as in that before.  Those near the edges of the
// image are 0.
struct CellBoxes {
  Tensor boxes, inside, bias;  // inside [1, cells, 1]: 1 or 0; bias: 0 or −∞

  explicit CellBoxes(const RfDetrCells& cells)
      : boxes(Tensor::zeros({1, cells.values.size(1), 4})),
        inside(Tensor::zeros({1, cells.values.size(1), 1})),
        bias(Tensor::full({1, cells.values.size(1), 1}, -std::numeric_limits<double>::infinity())) {
    constexpr float kSize = 0.05F, kFirst = 0.01F, kLast = 0.99F;
    int64_t at = 0;
    float size = kSize;
    for (const auto& [height, width] : cells.levels) {
      for (int64_t i = 0; i < height * width; ++i, ++at) {
        const float x = (static_cast<float>(i % width) + 0.5F) / static_cast<float>(width),
                    y = (static_cast<float>(i / width) + 0.5F) / static_cast<float>(height);
        if (std::min({x, y, size}) <= kFirst || std::max({x, y, size}) >= kLast) continue;
        std::ranges::copy(std::array{x, y, size, size}, boxes.data<float>() + 4 * at);
        inside.data<float>()[at] = 1;
        bias.data<float>()[at] = 0;
      }
      size *= 2;
    }
  }
};

// rows [1, Q, D] for each image of `batch` [B, …] → [B, Q, D].  A linear layer of the result is recorded, as that of an
// expanded view of a parameter would not be.
Tensor repeated_for_images(const Tensor& rows, const Tensor& batch) {
  const int64_t count = batch.size(0), size = rows.numel();
  const auto kernel = [=](auto in, auto out) {
    for (int64_t b = 0; b < count; ++b) std::copy_n(in[1].data, size, out[0].data + b * size);
  };
  const auto onnx = [](ops::OnnxValues& values, const auto& in, const auto&) {
    ops::OnnxGraph& graph = values.graph();
    const std::string images =
        graph.node("Shape", {values.value_of(in[0])}, {{"start", int64_t{0}}, {"end", int64_t{1}}});
    const std::string shape = graph.node("Concat", {images, graph.constant(ops::Ints{1, 1})}, {{"axis", int64_t{0}}});
    return graph.node("Expand", {values.value_of(in[1]), shape});
  };
  const auto gradient = [count](const ops::Tensors& in, const ops::Tensors&) -> ops::Backward {
    return [count, shape = in[1].shape()](const Tensor& grad) {
      const Tensor sum = grad.narrow(0, 0, 1).to(DType::f32).contiguous().clone();
      for (int64_t b = 1; b < count; ++b) sum.copy_(ops::add(sum, grad.narrow(0, b, 1).to(DType::f32)));
      return ops::Tensors{{}, sum.view(shape)};
    };
  };
  return ops::apply({.name = "repeat",
                     .shape = {count, rows.size(1), rows.size(2)},
                     .kernel = kernel,
                     .gradient = gradient,
                     .onnx = onnx},
                    {batch, rows});
}

// Without a bias, or with that of the batch normalisation.
nn::Conv2d rf_detr_convolution(nn::Conv2dConfig shape, const RfDetrProjectorConfig& config, const ParamSource& params) {
  shape.bias = config.batch_norm;
  if (!config.batch_norm) return {shape, params.child("conv")};
  nn::FoldedBatchNorm folded(params.child("conv"), params.child("norm"), false, config.norm_eps);
  return {shape, ParamSource(folded, params.child("conv").path())};
}

// What RfDetrSampling makes of a width.
int64_t sampled_width(int64_t dim, double scale) { return scale != 2 ? dim : dim > kWideMap ? dim / 4 : dim / 2; }

int64_t levels_of(const RfDetrConfig& config) { return std::ssize(config.projector.scales); }

}  // namespace

RfDetrCells::RfDetrCells(const std::vector<Tensor>& maps) {
  std::vector<Tensor> parts;
  for (const Tensor& map : maps) {
    levels.push_back({map.size(1), map.size(2)});
    parts.push_back(map.view({map.size(0), map.size(1) * map.size(2), map.size(3)}));
  }
  values = parts.size() == 1 ? parts.front() : ops::cat(parts, 1);
}

RfDetrBackbone::RfDetrBackbone(const RfDetrBackboneConfig& config, const ParamSource& params)
    : VitBackbone(params.path()),
      config_(config),
      patch_embed_(patch_embed_config(checked(config.vit)), params.child("patch_embed")),
      blocks_("blocks") {
  const int64_t dim = config.vit.embed_dim;
  const TokenInit init = token_init_of(config.vit);
  const std::array<int64_t, 2> own = own_grid(config.vit);
  if (config.vit.class_token) cls_token_ = params.get("cls_token", {1, 1, dim}, init.tokens);
  pos_embed_ = params.get("pos_embed", {1, 1 + own[0] * own[1], dim}, init.positions);
  for (int64_t i = 0; i < config.vit.depth; ++i)
    blocks_.emplace_back(block_config(config.vit, i), params.child("blocks").child(i));
  if (config.vit.final_norm) norm_.emplace(dim, config.vit.norm_eps, params.child("norm"));
}

Tensor RfDetrBackbone::embed(const Tensor& images, int64_t grid) const {
  const Windows windows(grid, config_.num_windows);
  const Tensor patches = patch_embed_.forward(images).to(images.dtype());  // the residual stream stays f32
  const int64_t batch = patches.size(0), count = patches.size(1), dim = patches.size(2);
  const Tensor positions =
      nn::resample_positions(pos_embed_, 1, own_grid(config_.vit), {grid, grid}, config_.vit.pos_interp)
          .to(patches.dtype());
  const Tensor placed = ops::add(patches, positions.narrow(1, 1, count)).view({batch, grid, grid, dim});
  const Tensor cells = ops::window_partition(placed, windows.side).view({batch, windows.count, windows.cells(), dim});
  if (!cls_token_.defined()) return cells;
  const Tensor token = ops::add(cls_token_.to(patches.dtype()), positions.narrow(1, 0, 1));
  return ops::cat({token.unsqueeze(1).expand({batch, windows.count, 1, dim}), cells}, 2);
}

std::vector<Tensor> RfDetrBackbone::forward(const Tensor& images) const {
  const auto [rows, columns] = patch_embed_.grid_of(images.size(2), images.size(3));
  if (rows != columns || rows % config_.num_windows != 0) {
    throw Error("images", str("a square of a multiple of ", config_.num_windows, " patches"),
                str(columns, "×", rows, " patches"));
  }
  const Windows windows(rows, config_.num_windows);
  Tensor x = embed(images, rows);
  const int64_t batch = x.size(0), tokens = x.size(2), dim = x.size(3);
  const Shape each{batch * windows.count, tokens, dim}, all{batch, windows.count * tokens, dim};
  std::vector<Tensor> maps;
  for (int64_t i = 0; i < config_.vit.depth; ++i) {
    x = blocks_[static_cast<size_t>(i)].forward(x.view(config_.windowed[static_cast<size_t>(i)] ? each : all));
    if (std::ranges::find(config_.maps, i + 1) == config_.maps.end()) continue;
    const Tensor output = x.view(each);
    const Tensor normalized = config_.final_norm ? norm_->forward(output) : output;
    const Tensor cells = ops::contiguous(normalized.narrow(1, tokens - windows.cells(), windows.cells()));
    maps.push_back(ops::window_unpartition(cells, windows.side, rows, columns));
  }
  return maps;
}

void RfDetrBackbone::visit(nn::Visitor& visitor) {
  if (cls_token_.defined()) visitor.parameter("cls_token", cls_token_);
  visitor.parameter("pos_embed", pos_embed_);
  visitor.child("patch_embed", static_cast<nn::Module&>(patch_embed_));
  visitor.child("blocks", static_cast<nn::Module&>(blocks_));
  if (norm_) visitor.child("norm", static_cast<nn::Module&>(*norm_));
}

RfDetrConvNorm::RfDetrConvNorm(const nn::Conv2dConfig& shape, kernels::Activation act,
                               const RfDetrProjectorConfig& config, const ParamSource& params)
    : Module(params.path()), act_(act), conv_(rf_detr_convolution(shape, config, params)) {
  if (!config.batch_norm) norm_.emplace(shape.out_chans, config.norm_eps, params.child("norm"));
}

Tensor RfDetrConvNorm::forward(const Tensor& x) const {
  return nn::traced(*this, norm_ ? ops::activation(norm_->forward(conv_.forward(x)), act_) : conv_.forward(x, act_));
}

void RfDetrConvNorm::visit(nn::Visitor& visitor) {
  visitor.child("conv", static_cast<nn::Module&>(conv_));
  if (norm_) visitor.child("norm", static_cast<nn::Module&>(*norm_));
}

RfDetrBottleneck::RfDetrBottleneck(const RfDetrProjectorConfig& config, const ParamSource& params)
    : Module(params.path()),
      cv1_({.in_chans = config.hidden, .out_chans = config.hidden, .kernel = 3}, config.act, config,
           params.child("cv1")),
      cv2_({.in_chans = config.hidden, .out_chans = config.hidden, .kernel = 3}, config.act, config,
           params.child("cv2")) {}

void RfDetrBottleneck::visit(nn::Visitor& visitor) {
  visitor.child("cv1", static_cast<nn::Module&>(cv1_));
  visitor.child("cv2", static_cast<nn::Module&>(cv2_));
}

RfDetrSampling::RfDetrSampling(int64_t dim, double scale, const RfDetrProjectorConfig& config,
                               const ParamSource& params)
    : Module(params.path()) {
  const ParamSource first = params.child("layers").child(0);
  const kernels::Activation relu = kernels::Activation::relu;
  if (scale < 1) {
    convolution_.emplace(nn::Conv2dConfig{.in_chans = dim, .out_chans = dim, .kernel = 3, .stride = 2}, relu, config,
                         first);
  } else if (dim > kWideMap) {
    convolution_.emplace(nn::Conv2dConfig{.in_chans = dim, .out_chans = dim / 2}, relu, config, first);
    transposed_.emplace(nn::Conv2dConfig{.in_chans = dim / 2, .out_chans = dim / 4, .kernel = 2},
                        params.child("layers").child(1));
  } else {
    transposed_.emplace(nn::Conv2dConfig{.in_chans = dim, .out_chans = dim / 2, .kernel = 2}, first);
  }
}

Tensor RfDetrSampling::forward(const Tensor& x) const {
  const Tensor y = convolution_ ? convolution_->forward(x) : x;
  return nn::traced(*this, transposed_ ? transposed_->forward(y) : y);
}

void RfDetrSampling::visit(nn::Visitor& visitor) {
  if (convolution_) visitor.child("layers.0", static_cast<nn::Module&>(*convolution_));
  if (transposed_) visitor.child(convolution_ ? "layers.1" : "layers.0", static_cast<nn::Module&>(*transposed_));
}

RfDetrProjector::RfDetrProjector(const RfDetrConfig& config, double scale, const ParamSource& params)
    : Module(params.path()),
      hidden_(config.projector.hidden),
      sampling_(params.child("sampling").path()),
      cv1_({.in_chans = sampled_width(config.backbone.vit.embed_dim, scale) * std::ssize(config.backbone.maps),
            .out_chans = 2 * config.projector.hidden},
           config.projector.act, config.projector, params.child("cv1")),
      cv2_({.in_chans = (2 + config.projector.blocks) * config.projector.hidden, .out_chans = config.dim},
           config.projector.act, config.projector, params.child("cv2")),
      m_(params.child("m").path()),
      norm_(config.dim, kMapNormEps, params.child("norm")) {
  for (int64_t i = 0; scale != 1 && i < std::ssize(config.backbone.maps); ++i)
    sampling_.emplace_back(config.backbone.vit.embed_dim, scale, config.projector, params.child("sampling").child(i));
  for (int64_t i = 0; i < config.projector.blocks; ++i) m_.emplace_back(config.projector, params.child("m").child(i));
}

Tensor RfDetrProjector::forward(const std::vector<Tensor>& maps) const {
  std::vector<Tensor> sampled = maps;
  for (size_t i = 0; i < sampling_.size(); ++i) sampled[i] = sampling_[i].forward(maps[i]);
  const Tensor halves = cv1_.forward(sampled.size() == 1 ? sampled.front() : ops::cat(sampled, 3));
  std::vector<Tensor> parts{halves};
  Tensor last = ops::contiguous(halves.narrow(3, hidden_, hidden_));
  for (const RfDetrBottleneck& bottleneck : m_) parts.push_back(last = bottleneck.forward(last));
  return nn::traced(*this, norm_.forward(cv2_.forward(ops::cat(parts, 3))));
}

void RfDetrProjector::visit(nn::Visitor& visitor) {
  if (sampling_.size() > 0) visitor.child("sampling", static_cast<nn::Module&>(sampling_));
  visitor.child("cv1", static_cast<nn::Module&>(cv1_));
  visitor.child("cv2", static_cast<nn::Module&>(cv2_));
  visitor.child("m", static_cast<nn::Module&>(m_));
  visitor.child("norm", static_cast<nn::Module&>(norm_));
}

RfDetrProposals::RfDetrProposals(const RfDetrConfig& config, const ParamSource& params)
    : Module(params.path()),
      num_queries_(config.num_queries),
      enc_output_(config.dim, config.dim, true, params.child("enc_output")),
      enc_output_norm_(config.dim, kQueryNormEps, params.child("enc_output_norm")),
      enc_out_class_embed_(config.dim, config.num_classes(), true, params.child("enc_out_class_embed")),
      enc_out_bbox_embed_(config.dim, config.dim, 4, params.child("enc_out_bbox_embed")) {}

// As transformers, a cell near the edge is chosen only if there are not enough others.
Tensor RfDetrProposals::forward(const RfDetrCells& cells) const {
  const CellBoxes start(cells);
  const Tensor features = enc_output_norm_.forward(enc_output_.forward(ops::mul(cells.values, start.inside)));
  const Tensor scores = ops::add(enc_out_class_embed_.forward(features), start.bias);
  const Tensor boxes = refined_boxes(start.boxes, enc_out_bbox_embed_.forward(features));
  return nn::traced(*this, best_boxes(scores, boxes, num_queries_));
}

RfDetrOutput RfDetrProposals::chosen(const RfDetrCells& cells) const {
  const CellBoxes start(cells);
  const Tensor features = enc_output_norm_.forward(enc_output_.forward(ops::mul(cells.values, start.inside)));
  const Tensor rows = best_rows(ops::add(enc_out_class_embed_.forward(features).detach(), start.bias), num_queries_);
  const Tensor boxes = refined_boxes(start.boxes, enc_out_bbox_embed_.forward(features));
  const auto at_rows = [&](const Tensor& x) {
    return ops::embedding(rows, x.view({x.size(0) * x.size(1), x.size(2)})).view({x.size(0), num_queries_, x.size(2)});
  };
  return {enc_out_class_embed_.forward(at_rows(features)), at_rows(boxes), {}};
}

void RfDetrProposals::visit(nn::Visitor& visitor) {
  visitor.child("enc_output", static_cast<nn::Module&>(enc_output_));
  visitor.child("enc_output_norm", static_cast<nn::Module&>(enc_output_norm_));
  visitor.child("enc_out_class_embed", static_cast<nn::Module&>(enc_out_class_embed_));
  visitor.child("enc_out_bbox_embed", static_cast<nn::Module&>(enc_out_bbox_embed_));
}

RfDetrCrossAttention::RfDetrCrossAttention(const RfDetrConfig& config, const ParamSource& params)
    : Module(params.path()),
      heads_(config.decoder.cross_heads),
      levels_(levels_of(config)),
      points_(config.decoder.points),
      sampling_offsets_(config.dim, heads_ * levels_ * points_ * 2, true, params.child("sampling_offsets")),
      attention_weights_(config.dim, heads_ * levels_ * points_, true, params.child("attention_weights")),
      value_proj_(config.dim, config.dim, true, params.child("value_proj")),
      output_proj_(config.dim, config.dim, true, params.child("output_proj")) {}

Tensor RfDetrCrossAttention::forward(const Tensor& queries, const Tensor& boxes, const RfDetrCells& cells) const {
  const int64_t batch = queries.size(0), count = queries.size(1), dim = queries.size(2);
  const auto of_boxes = [&](int64_t first) {
    return ops::contiguous(boxes.narrow(2, first, 2)).view({batch, count, 1, 2});
  };
  const Tensor reach = ops::mul(of_boxes(2), Tensor::full({1}, 0.5 / static_cast<double>(points_)));
  const Tensor offsets = sampling_offsets_.forward(queries).view({batch, count, heads_ * levels_ * points_, 2});
  const Tensor locations = ops::add(ops::mul(offsets, reach), of_boxes(0));
  const Tensor weights =
      ops::softmax(attention_weights_.forward(queries).view({batch, count, heads_, levels_ * points_}));
  const Tensor values = value_proj_.forward(cells.values);
  const Tensor read = ops::deformable_attention(values.view({batch, values.size(1), heads_, dim / heads_}),
                                                locations.view({batch, count, heads_, levels_, points_, 2}),
                                                weights.view({batch, count, heads_, levels_, points_}), cells.levels);
  return nn::traced(*this, output_proj_.forward(read));
}

void RfDetrCrossAttention::visit(nn::Visitor& visitor) {
  visitor.child("sampling_offsets", static_cast<nn::Module&>(sampling_offsets_));
  visitor.child("attention_weights", static_cast<nn::Module&>(attention_weights_));
  visitor.child("value_proj", static_cast<nn::Module&>(value_proj_));
  visitor.child("output_proj", static_cast<nn::Module&>(output_proj_));
}

RfDetrDecoderLayer::RfDetrDecoderLayer(const RfDetrConfig& config, const ParamSource& params)
    : Module(params.path()),
      act_(config.decoder.act),
      self_attn_({.embed_dim = config.dim, .num_heads = config.decoder.self_heads, .dropout = 0},
                 params.child("self_attn")),
      norm1_(config.dim, kQueryNormEps, params.child("norm1")),
      cross_attn_(config, params.child("cross_attn")),
      norm2_(config.dim, kQueryNormEps, params.child("norm2")),
      linear1_(config.dim, config.decoder.mlp_hidden, true, params.child("linear1")),
      linear2_(config.decoder.mlp_hidden, config.dim, true, params.child("linear2")),
      norm3_(config.dim, kQueryNormEps, params.child("norm3")) {}

Tensor RfDetrDecoderLayer::forward(const Tensor& queries, const Tensor& positions, const Tensor& boxes,
                                   const RfDetrCells& cells, int64_t groups) const {
  const Tensor placed = ops::add(queries, positions);
  const Shape apart{queries.size(0) * groups, queries.size(1) / groups, queries.size(2)};
  const Tensor keys = placed.view(apart);
  const Tensor attended = self_attn_.forward(keys, keys, queries.view(apart), {}, false).out.view(queries.shape());
  Tensor x = norm1_.forward(ops::add(queries, attended));
  x = norm2_.forward(ops::add(x, cross_attn_.forward(ops::add(x, positions), boxes, cells)));
  return nn::traced(*this, norm3_.forward(ops::add(x, linear2_.forward(linear1_.forward(x, act_)))));
}

void RfDetrDecoderLayer::visit(nn::Visitor& visitor) {
  visitor.child("self_attn", static_cast<nn::Module&>(self_attn_));
  visitor.child("norm1", static_cast<nn::Module&>(norm1_));
  visitor.child("cross_attn", static_cast<nn::Module&>(cross_attn_));
  visitor.child("norm2", static_cast<nn::Module&>(norm2_));
  visitor.child("linear1", static_cast<nn::Module&>(linear1_));
  visitor.child("linear2", static_cast<nn::Module&>(linear2_));
  visitor.child("norm3", static_cast<nn::Module&>(norm3_));
}

RfDetrDecoder::RfDetrDecoder(const RfDetrConfig& config, const ParamSource& params)
    : Module(params.path()),
      dim_(config.dim),
      ref_point_head_(params.child("ref_point_head").child("layers").path()),
      layers_(params.child("layers").path()),
      norm_(config.dim, kQueryNormEps, params.child("norm")) {
  for (int64_t i = 0; i < 2; ++i) {
    ref_point_head_.emplace_back(i == 0 ? 2 * dim_ : dim_, dim_, true,
                                 params.child("ref_point_head").child("layers").child(i));
  }
  for (int64_t i = 0; i < config.decoder.depth; ++i) layers_.emplace_back(config, params.child("layers").child(i));
}

Tensor RfDetrDecoder::forward(const Tensor& queries, const Tensor& boxes, const RfDetrCells& cells) const {
  return nn::traced(*this, layers(queries, boxes, cells, 1).back());
}

std::vector<Tensor> RfDetrDecoder::layers(const Tensor& queries, const Tensor& boxes, const RfDetrCells& cells,
                                          int64_t groups) const {
  const Tensor code = sine_code(boxes, dim_ / 2);
  const Tensor positions = ref_point_head_[1].forward(ref_point_head_[0].forward(code, kernels::Activation::relu));
  Tensor x = queries;
  std::vector<Tensor> outputs;
  for (const RfDetrDecoderLayer& layer : layers_) {
    x = layer.forward(x, positions, boxes, cells, groups);
    outputs.push_back(norm_.forward(x));
  }
  return outputs;
}

void RfDetrDecoder::visit(nn::Visitor& visitor) {
  visitor.child("ref_point_head.layers", static_cast<nn::Module&>(ref_point_head_));
  visitor.child("layers", static_cast<nn::Module&>(layers_));
  visitor.child("norm", static_cast<nn::Module&>(norm_));
}

RfDetr::RfDetr(const RfDetrConfig& config, const ParamSource& params)
    : Module(params.path()),
      config_(config),
      backbone_(config.backbone, params.child("backbone")),
      projector_(params.child("projector").path()),
      proposals_(params.child("transformer").path()),
      refpoint_embed_(params.get("refpoint_embed.weight", {config.groups * config.num_queries, 4}, nn::init::zeros())),
      query_feat_(
          params.get("query_feat.weight", {config.groups * config.num_queries, config.dim}, nn::init::normal(1))),
      decoder_(config, params.child("decoder")),
      class_embed_(config.dim, config.num_classes(), true, params.child("class_embed")),
      bbox_embed_(config.dim, config.dim, 4, params.child("bbox_embed")) {
  for (int64_t i = 0; i < config.groups; ++i) proposals_.emplace_back(config, params.child("transformer").child(i));
  for (int64_t i = 0; i < levels_of(config); ++i)
    projector_.emplace_back(config, config.projector.scales[static_cast<size_t>(i)],
                            params.child("projector").child(i));
  if (config.masks) segmentation_head_.emplace(config.dim, *config.masks, params.child("segmentation_head"));
}

std::vector<Tensor> RfDetr::maps_of(const Tensor& images) const {
  const std::vector<Tensor> of_backbone = backbone_.forward(images);
  std::vector<Tensor> maps;
  for (const RfDetrProjector& projector : projector_) maps.push_back(projector.forward(of_backbone));
  return maps;
}

RfDetrOutput RfDetr::forward(const Tensor& images) const {
  const std::vector<Tensor> maps = maps_of(images);
  const RfDetrCells cells(maps);
  const Tensor boxes = refined_boxes(proposals_[0].forward(cells), refpoint_embed_.unsqueeze(0));
  const Tensor queries = decoder_.forward(repeated_for_images(query_feat_.unsqueeze(0), boxes), boxes, cells);
  RfDetrOutput output{class_embed_.forward(queries), refined_boxes(boxes, bbox_embed_.forward(queries)), {}};
  if (segmentation_head_)
    output.masks = segmentation_head_->forward(maps.front(), queries, images.size(2) / config_.masks->downsampling);
  return output;
}

std::vector<RfDetrOutput> RfDetr::outputs(const Tensor& images, int64_t groups) const {
  const RfDetrCells cells(maps_of(images));
  std::vector<Tensor> logits, proposed;
  for (int64_t group = 0; group < groups; ++group) {
    const RfDetrOutput chosen = proposals_[static_cast<size_t>(group)].chosen(cells);
    logits.push_back(chosen.logits);
    proposed.push_back(chosen.boxes);
  }
  const RfDetrOutput proposals{ops::cat(logits, 1), ops::cat(proposed, 1), {}};
  const int64_t queries = groups * config_.num_queries;
  const auto of_groups = [&](const Tensor& rows) { return ops::contiguous(rows.narrow(0, 0, queries)).unsqueeze(0); };
  const Tensor boxes = refined_boxes(proposals.boxes.detach(), of_groups(refpoint_embed_));
  std::vector<RfDetrOutput> results;
  for (const Tensor& layer : decoder_.layers(repeated_for_images(of_groups(query_feat_), boxes), boxes, cells, groups))
    results.push_back({class_embed_.forward(layer), refined_boxes(boxes, bbox_embed_.forward(layer)), {}});
  std::swap(results.front(), results.back());
  results.push_back(proposals);
  return results;
}

void RfDetr::visit(nn::Visitor& visitor) {
  visitor.child("backbone", static_cast<nn::Module&>(backbone_));
  visitor.child("projector", static_cast<nn::Module&>(projector_));
  visitor.child("transformer", static_cast<nn::Module&>(proposals_));
  visitor.parameter("refpoint_embed.weight", refpoint_embed_);
  visitor.parameter("query_feat.weight", query_feat_);
  visitor.child("decoder", static_cast<nn::Module&>(decoder_));
  visitor.child("class_embed", static_cast<nn::Module&>(class_embed_));
  visitor.child("bbox_embed", static_cast<nn::Module&>(bbox_embed_));
  if (segmentation_head_) visitor.child("segmentation_head", static_cast<nn::Module&>(*segmentation_head_));
}

bool is_rf_detr(const ModelFiles& files) {
  const weights::Checkpoint& file = files.first;
  const auto has = [&](const std::string& decoder, const char* boxes) {
    return file.has(decoder + "decoder.layers.0.cross_attn.sampling_offsets.weight") && file.has(boxes);
  };
  return has("transformer.", "refpoint_embed.weight") || has("", "refpoint_embed.weight") ||
         has("model.", "model.reference_point_embed.weight");
}

RfDetrFiles open_rf_detr(const ModelFiles& files) {
  auto checkpoint = files.checkpoint();
  const bool has_config = is_present(files.config), has_authors_names = checkpoint->has("refpoint_embed.weight");
  if (!has_config && !(has_authors_names && checkpoint->has("backbone.0.encoder.encoder.embeddings.cls_token"))) {
    throw Error(files.weights.front().string(), "transformers' config.json and preprocessor_config.json beside it",
                "none");
  }
  PreprocessorFile preprocessor = preprocessor_file(files.config.parent_path());
  std::string text;
  if (has_config) {
    text = read_regular_text_file(files.config);
  } else {
    RfDetrTexts texts = rf_detr_texts_of(*checkpoint);
    text = std::move(texts.config);
    if (preprocessor.text.empty()) preprocessor = {std::move(texts.preprocessor), checkpoint->path()};
  }
  RfDetrConfig config =
      read_rf_detr_config(text, has_config ? files.config.string() : checkpoint->path(), preprocessor.text,
                          preprocessor.path, checkpoint->has("segmentation_head.bias"));
  weights::KeyMap key_map = rf_detr_key_map(*checkpoint, config);
  return {std::move(checkpoint), std::move(key_map), std::move(config), text, preprocessor.text};
}

int64_t groups_of(const RfDetrFiles& files) {
  const weights::Checkpoint& file = *files.checkpoint;
  const char* const name = file.has(kRfDetrQueries) ? kRfDetrQueries : "model.query_feat.weight";
  return file.tensor(name).size(0) / files.config.num_queries;
}

RfDetrFiles with_groups(RfDetrFiles files, int64_t groups) {
  files.config.groups = groups;
  files.key_map = rf_detr_key_map(*files.checkpoint, files.config);
  return files;
}

RfDetr load_rf_detr(const RfDetrFiles& files) { return load_configured<RfDetr>(files); }

}  // namespace vitrail::models
