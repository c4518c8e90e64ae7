// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/sam/hq_head.h"

#include "vitrail/nn/trace.h"
#include "vitrail/ops/activation.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/linear.h"

namespace vitrail::models {
namespace {

constexpr double kNormEps = 1e-6;

// The channels of SamTrunk::intermediate.
int64_t width_of_intermediate(const SamEncoderConfig& config) {
  return config.stages.empty() ? config.dim : config.stages[1].out_dim;
}

}  // namespace

SamUpscaling::SamUpscaling(int64_t in, int64_t hidden, int64_t out, const ParamSource& params)
    : Module(params.path()),
      conv1_({.in_chans = in, .out_chans = hidden, .kernel = 2}, params.child("0")),
      norm_(hidden, kNormEps, params.child("1")),
      conv2_({.in_chans = hidden, .out_chans = out, .kernel = 2}, params.child("3")) {}

Tensor SamUpscaling::forward(const Tensor& x, kernels::Activation activation, std::span<const Tensor> fine_maps) const {
  const auto added = [&](const Tensor& y, size_t map) { return fine_maps.empty() ? y : ops::add(y, fine_maps[map]); };
  const Tensor hidden = ops::activation(norm_.forward(added(conv1_.forward(x), 0)), kernels::Activation::gelu);
  if (!nn::tracing() && fine_maps.empty()) return conv2_.forward(hidden, activation);
  return traced(*this, ops::activation(added(conv2_.forward(hidden), 1), activation));
}

void SamUpscaling::visit(nn::Visitor& visitor) {
  visitor.child("0", static_cast<nn::Module&>(conv1_));
  visitor.child("1", static_cast<nn::Module&>(norm_));
  visitor.child("3", static_cast<nn::Module&>(conv2_));
}

SamHqHead::SamHqHead(const SamConfig& config, const ParamSource& params)
    : Module(params.path()),
      intermediate_width_(width_of_intermediate(config.encoder)),
      token_(params.get("hf_token.weight", {1, config.decoder.dim}, nn::init::normal(1))),
      mlp_(config.decoder.dim, config.decoder.dim, config.decoder.upscale_dims[1], params.child("hf_mlp")),
      block_upscaling_(intermediate_width_, config.decoder.dim, config.decoder.upscale_dims[1],
                       params.child("compress_vit_feat")),
      embedding_upscaling_(config.decoder.dim, config.decoder.upscale_dims[0], config.decoder.upscale_dims[1],
                           params.child("embedding_encoder")),
      conv1_({.in_chans = config.decoder.upscale_dims[1], .out_chans = config.decoder.upscale_dims[0], .kernel = 3},
             params.child("embedding_maskfeature.0")),
      norm_(config.decoder.upscale_dims[0], kNormEps, params.child("embedding_maskfeature.1")),
      conv2_({.in_chans = config.decoder.upscale_dims[0], .out_chans = config.decoder.upscale_dims[1], .kernel = 3},
             params.child("embedding_maskfeature.3")) {}

Tensor SamHqHead::features(const Tensor& embedding, const Tensor& intermediate) const {
  return ops::add(embedding_upscaling_.forward(embedding), block_upscaling_.forward(intermediate));
}

Tensor SamHqHead::mask(const Tensor& token, const Tensor& cells, const Tensor& features) const {
  const Tensor hidden = ops::activation(norm_.forward(conv1_.forward(cells)), kernels::Activation::gelu);
  const Tensor map = ops::add(conv2_.forward(hidden), features);
  return ops::matmul(mlp_.forward(token),
                     map.view({map.size(0), map.size(1) * map.size(2), map.size(3)}).transpose(1, 2));
}

void SamHqHead::visit(nn::Visitor& visitor) {
  visitor.parameter("hf_token.weight", token_);
  visitor.child("hf_mlp", static_cast<nn::Module&>(mlp_));
  visitor.child("compress_vit_feat", static_cast<nn::Module&>(block_upscaling_));
  visitor.child("embedding_encoder", static_cast<nn::Module&>(embedding_upscaling_));
  visitor.child("embedding_maskfeature.0", static_cast<nn::Module&>(conv1_));
  visitor.child("embedding_maskfeature.1", static_cast<nn::Module&>(norm_));
  visitor.child("embedding_maskfeature.3", static_cast<nn::Module&>(conv2_));
}

}  // namespace vitrail::models
