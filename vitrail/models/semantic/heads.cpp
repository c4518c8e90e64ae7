// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/semantic/heads.h"

#include <cmath>

#include "vitrail/models/semantic/dpt_head.h"
#include "vitrail/models/semantic/patch_maps_internal.h"
#include "vitrail/models/semantic/upernet.h"
#include "vitrail/nn/init.h"
#include "vitrail/nn/trace.h"

namespace vitrail::models {
namespace {

// The weight [out, in, 1, 1] and the bias of a convolution that contain the batch normalisation in front of it:
// weight · γ / √(var + ε), and bias + Σ weight · (β − mean · γ / √(var + ε)).
class BatchNormInFront : public ParamProvider {
 public:
  BatchNormInFront(ParamSource norm, ParamSource convolution)
      : norm_(std::move(norm)), convolution_(std::move(convolution)) {}

  Tensor get(const std::string& path, const Shape& shape, const Initializer& initial) override {
    if (!path.ends_with(".weight")) return add_shift(convolution_.get("bias", shape, initial));
    weight_ = convolution_.get("weight", shape, initial);
    const Shape channels{shape[1]};
    const Tensor gamma = values("weight", channels, nn::init::ones()),
                 beta = values("bias", channels, nn::init::zeros());
    const Tensor mean = values("running_mean", channels, nn::init::zeros());
    const Tensor variance = values("running_var", channels, nn::init::ones());
    for (const Tensor& each : {weight_, gamma, beta, mean, variance}) {
      if (each.is_meta()) return weight_;
    }
    constexpr double kEps = 1e-5;
    scale_.clear();
    for (int64_t i = 0; i < shape[1]; ++i) {
      scale_.push_back(gamma.data<float>()[i] / std::sqrt(static_cast<double>(variance.data<float>()[i]) + kEps));
      shift_.push_back(beta.data<float>()[i] - mean.data<float>()[i] * scale_.back());
    }
    const Tensor scaled = weight_.to(DType::f32).clone();  // the file's memory stays as it is
    for (int64_t i = 0; i < scaled.numel(); ++i)
      scaled.data<float>()[i] = static_cast<float>(scaled.data<float>()[i] * scale_[static_cast<size_t>(i % shape[1])]);
    return scaled;
  }
  bool has(const std::string& path) const override {
    return convolution_.has(path.ends_with(".weight") ? "weight" : "bias");
  }
  void finish() override {}

 private:
  Tensor values(const char* name, const Shape& shape, const Initializer& initial) {
    return norm_.get(name, shape, initial).to(DType::f32).contiguous();
  }

  Tensor add_shift(const Tensor& bias) {
    if (bias.is_meta() || shift_.empty()) return bias;
    const Tensor sum = bias.to(DType::f32).clone(), weight = weight_.to(DType::f32).contiguous();
    const size_t in = shift_.size();
    for (int64_t out = 0; out < sum.numel(); ++out) {
      double total = sum.data<float>()[out];
      for (size_t i = 0; i < in; ++i) total += weight.data<float>()[static_cast<size_t>(out) * in + i] * shift_[i];
      sum.data<float>()[out] = static_cast<float>(total);
    }
    return sum;
  }

  ParamSource norm_, convolution_;
  Tensor weight_;
  std::vector<double> scale_, shift_;
};

nn::Conv2d linear_layer(const SemanticConfig& config, const ParamSource& params) {
  const auto layers = static_cast<int64_t>(config.layers.size());
  const nn::Conv2dConfig shape{.in_chans = layers * config.backbone.embed_dim, .out_chans = config.num_classes()};
  const ParamSource convolution = params.child("conv_seg");
  if (!config.batch_norm) return {shape, convolution};
  BatchNormInFront folded(params.child("bn"), convolution);
  return {shape, ParamSource(folded, convolution.path())};
}

}  // namespace

LinearSemanticHead::LinearSemanticHead(const SemanticConfig& config, const ParamSource& params)
    : SemanticHeadModule(params.path()), conv_seg_(linear_layer(config, params)) {}

Tensor LinearSemanticHead::forward(const std::vector<Tensor>& tokens, int64_t rows, int64_t columns) const {
  return nn::traced(*this, conv_seg_.forward(patch_map(tokens, rows, columns)));
}

void LinearSemanticHead::visit(nn::Visitor& visitor) { visitor.child("conv_seg", static_cast<nn::Module&>(conv_seg_)); }

std::unique_ptr<SemanticHeadModule> make_semantic_head(const SemanticConfig& config, const ParamSource& params) {
  switch (config.head) {
    case SemanticHead::dpt:
      return std::make_unique<DptSemanticHead>(config, params);
    case SemanticHead::upernet:
      return std::make_unique<UperNetHead>(config, params);
    case SemanticHead::linear:
      break;
  }
  return std::make_unique<LinearSemanticHead>(config, params);
}

}  // namespace vitrail::models
