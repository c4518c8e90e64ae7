// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/owl/owl.h"

#include <cmath>

#include "vitrail/models/dense/sigmoid_internal.h"
#include "vitrail/nn/trace.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/operation.h"

namespace vitrail::models {
namespace {

// In single precision, as transformers computes it: the last coordinate is 1, where the logarithm amplifies rounding.
float logit_with_margin(float share) {
  constexpr float kMargin = 1e-4F;
  return std::log(share + kMargin) - std::log1p(-share + kMargin);
}

// The logits of a box at the lower right corner of each patch, of a patch's size: [1, N, 4].
Tensor box_bias_of(const std::array<int64_t, 2>& grid) {
  const auto [rows, columns] = grid;
  const auto height = static_cast<float>(rows), width = static_cast<float>(columns);
  const Tensor bias = Tensor::empty({1, rows * columns, 4});
  float* to = bias.data<float>();
  for (int64_t y = 1; y <= rows; ++y) {
    for (int64_t x = 1; x <= columns; ++x) {
      *to++ = logit_with_margin(static_cast<float>(x) / width);
      *to++ = logit_with_margin(static_cast<float>(y) / height);
      *to++ = logit_with_margin(1 / width);
      *to++ = logit_with_margin(1 / height);
    }
  }
  return bias;
}

// x / (‖x‖ + 1e-6) of each row.
Tensor unit_rows(const Tensor& x) {
  constexpr double kMargin = 1e-6;
  const auto kernel = [](auto in, auto out) {
    const ops::Rows rows(in[0]);
    using T = std::remove_reference_t<decltype(*out[0].data)>;
    for (int64_t r = 0; r < rows.count; ++r) {
      const auto* const from = in[0].data + r * rows.cols;
      T* const to = out[0].data + r * rows.cols;
      double sum = 0;
      for (int64_t c = 0; c < rows.cols; ++c) sum += static_cast<double>(from[c]) * static_cast<double>(from[c]);
      const auto factor = static_cast<T>(1 / (std::sqrt(sum) + kMargin));
      for (int64_t c = 0; c < rows.cols; ++c) to[c] = from[c] * factor;
    }
  };
  const auto onnx = [](ops::OnnxValues& values, const auto& in, const auto&) {
    ops::OnnxGraph& graph = values.graph();
    const std::string value = values.value_of(in[0]);
    const std::string mean = values.mean(graph.node("Mul", {value, value}), in[0].rank() - 1, true);
    const std::string sum = graph.node("Mul", {mean, graph.scalar(static_cast<double>(in[0].size(-1)))});
    return graph.node("Div", {value, graph.node("Add", {graph.node("Sqrt", {sum}), graph.scalar(kMargin)})});
  };
  return ops::apply({.name = "unit_rows", .shape = x.shape(), .kernel = kernel, .plain_loop = true, .onnx = onnx}, {x});
}

// elu(x) + 1 (Clevert et al. 2016), which is above 0.
Tensor elu_plus_one(const Tensor& x) {
  const auto kernel = [](auto in, auto out) {
    for (int64_t i = 0; i < out[0].tensor->numel(); ++i) {
      const auto value = in[0].data[i];
      out[0].data[i] = value > 0 ? value + 1 : std::exp(value);
    }
  };
  const auto onnx = [](ops::OnnxValues& values, const auto& in, const auto&) {
    ops::OnnxGraph& graph = values.graph();
    return graph.node("Add", {graph.node("Elu", {values.value_of(in[0])}), graph.scalar(1)});
  };
  return ops::apply({.name = "elu_plus_one", .shape = x.shape(), .kernel = kernel, .plain_loop = true, .onnx = onnx},
                    {x});
}

}  // namespace

OwlMlp::OwlMlp(int64_t dim, int64_t out, const ParamSource& params)
    : Module(params.path()),
      dense0_(dim, dim, true, params.child("dense0")),
      dense1_(dim, dim, true, params.child("dense1")),
      dense2_(dim, out, true, params.child("dense2")) {}

Tensor OwlMlp::forward(const Tensor& x) const {
  using kernels::Activation;
  return nn::traced(*this, dense2_.forward(dense1_.forward(dense0_.forward(x, Activation::gelu), Activation::gelu)));
}

void OwlMlp::visit(nn::Visitor& visitor) {
  visitor.child("dense0", static_cast<nn::Module&>(dense0_));
  visitor.child("dense1", static_cast<nn::Module&>(dense1_));
  visitor.child("dense2", static_cast<nn::Module&>(dense2_));
}

OwlHeads::OwlHeads(const OwlConfig& config, const ParamSource& params)
    : Module(params.path()),
      layer_norm_(config.vision_dim, config.norm_eps, params.child("layer_norm")),
      dense0_(config.vision_dim, config.text_dim, true, params.child("class_head").child("dense0")),
      logit_shift_(config.vision_dim, 1, true, params.child("class_head").child("logit_shift")),
      logit_scale_(config.vision_dim, 1, true, params.child("class_head").child("logit_scale")),
      box_head_(config.vision_dim, 4, params.child("box_head")),
      box_bias_(box_bias_of(config.grid)) {
  if (config.objectness) objectness_head_.emplace(config.vision_dim, 1, params.child("objectness_head"));
}

// The class token multiplies each patch, channel by channel.
OwlOutput OwlHeads::forward(const Tensor& tokens) const {
  const Tensor patches = ops::contiguous(tokens.narrow(1, 1, tokens.size(1) - 1));
  const Tensor x = layer_norm_.forward(ops::mul(patches, ops::contiguous(tokens.narrow(1, 0, 1))));
  OwlOutput output{.class_embeds = dense0_.forward(x),
                   .logit_shift = logit_shift_.forward(x),
                   .logit_scale = logit_scale_.forward(x),
                   .boxes = sigmoid(ops::add(box_head_.forward(x), box_bias_)),
                   .objectness = {}};
  if (objectness_head_) output.objectness = objectness_head_->forward(x).squeeze(2);
  return output;
}

void OwlHeads::visit(nn::Visitor& visitor) {
  visitor.child("layer_norm", static_cast<nn::Module&>(layer_norm_));
  visitor.child("class_head.dense0", static_cast<nn::Module&>(dense0_));
  visitor.child("class_head.logit_shift", static_cast<nn::Module&>(logit_shift_));
  visitor.child("class_head.logit_scale", static_cast<nn::Module&>(logit_scale_));
  visitor.child("box_head", static_cast<nn::Module&>(box_head_));
  if (objectness_head_) visitor.child("objectness_head", objectness_head_);
}

Tensor owl_logits(const OwlOutput& patches, const Tensor& queries) {
  const Tensor similarity = ops::matmul(unit_rows(patches.class_embeds), unit_rows(queries).transpose(1, 2));
  return ops::mul(ops::add(similarity, patches.logit_shift), elu_plus_one(patches.logit_scale));
}

OwlNetwork::OwlNetwork(const OwlConfig& config, const VisionTransformerConfig& vision, const ParamSource& params)
    : Module(params.path()), vision_(vision, params.child("vision")), heads_(config, params.child("heads")) {}

OwlOutput OwlNetwork::forward(const Tensor& images) const { return heads_.forward(vision_.forward_features(images)); }

void OwlNetwork::visit(nn::Visitor& visitor) {
  visitor.child("vision", static_cast<nn::Module&>(vision_));
  visitor.child("heads", static_cast<nn::Module&>(heads_));
}

}  // namespace vitrail::models
