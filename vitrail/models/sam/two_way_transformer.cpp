// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/sam/two_way_transformer.h"

#include "vitrail/nn/trace.h"
#include "vitrail/ops/elementwise.h"

namespace vitrail::models {
namespace {

constexpr double kTwoWayNormEps = 1e-5;

nn::DownsampledAttentionConfig attention(const SamDecoderConfig& config, int64_t width) {
  return {.embedding_dim = config.dim, .num_heads = config.num_heads, .downsample_rate = config.dim / width};
}

}  // namespace

SamTwoWayBlock::SamTwoWayBlock(const SamDecoderConfig& config, bool first, const ParamSource& params)
    : Module(params.path()),
      first_(first),
      self_attn_(attention(config, config.dim), params.child("self_attn")),
      norm1_(config.dim, kTwoWayNormEps, params.child("norm1")),
      token_to_image_(attention(config, config.cross_dim), params.child("cross_attn_token_to_image")),
      norm2_(config.dim, kTwoWayNormEps, params.child("norm2")),
      mlp_({.in_features = config.dim,
            .hidden_features = config.mlp_hidden,
            .activation = kernels::Activation::relu,
            .sam_names = true},
           params.child("mlp")),
      norm3_(config.dim, kTwoWayNormEps, params.child("norm3")),
      norm4_(config.dim, kTwoWayNormEps, params.child("norm4")),
      image_to_token_(attention(config, config.cross_dim), params.child("cross_attn_image_to_token")) {}

Tensor SamTwoWayBlock::self_attention(const Tensor& tokens, const Tensor& positions) const {
  if (first_) return self_attn_.forward(tokens, tokens, tokens);
  const Tensor tokens_with_positions = ops::add(tokens, positions);
  return ops::add(tokens, self_attn_.forward(tokens_with_positions, tokens_with_positions, tokens));
}

SamStreams SamTwoWayBlock::forward(const SamStreams& streams, const SamStreams& positions,
                                   const SamImageProjections* projections) const {
  const Tensor attended = self_attention(streams.tokens, positions.tokens);
  trace(*this, "attended", attended);
  Tensor tokens = norm1_.forward(attended);
  const Tensor image_with_positions = ops::add(streams.image, positions.image);
  const Tensor query = ops::add(tokens, positions.tokens);
  tokens =
      ops::add(tokens, projections ? token_to_image_.forward_projected_keys(query, projections->key, projections->value)
                                   : token_to_image_.forward(query, image_with_positions, streams.image));
  tokens = norm2_.forward(tokens);
  tokens = norm3_.forward(ops::add(tokens, mlp_.forward(tokens)));
  const Tensor key = ops::add(tokens, positions.tokens);
  const Tensor from_tokens = projections ? image_to_token_.forward_projected_query(projections->query, key, tokens)
                                         : image_to_token_.forward(image_with_positions, key, tokens);
  return {tokens, norm4_.forward(ops::add(from_tokens, streams.image))};  // the image may have a batch of 1
}

SamImageProjections SamTwoWayBlock::project(const Tensor& image, const Tensor& positions) const {
  const Tensor image_with_positions = ops::add(image, positions);
  return {image_to_token_.project_query(image_with_positions), token_to_image_.project_key(image_with_positions),
          token_to_image_.project_value(image)};
}

void SamTwoWayBlock::visit(nn::Visitor& visitor) {
  visitor.child("self_attn", static_cast<nn::Module&>(self_attn_));
  visitor.child("norm1", static_cast<nn::Module&>(norm1_));
  visitor.child("cross_attn_token_to_image", static_cast<nn::Module&>(token_to_image_));
  visitor.child("norm2", static_cast<nn::Module&>(norm2_));
  visitor.child("mlp", static_cast<nn::Module&>(mlp_));
  visitor.child("norm3", static_cast<nn::Module&>(norm3_));
  visitor.child("norm4", static_cast<nn::Module&>(norm4_));
  visitor.child("cross_attn_image_to_token", static_cast<nn::Module&>(image_to_token_));
}

SamTwoWayTransformer::SamTwoWayTransformer(const SamDecoderConfig& config, const ParamSource& params)
    : Module(params.path()),
      layers_(params.child("layers").path()),
      final_attn_(attention(config, config.cross_dim), params.child("final_attn_token_to_image")),
      norm_final_(config.dim, kTwoWayNormEps, params.child("norm_final_attn")) {
  for (int64_t i = 0; i < config.depth; ++i) layers_.emplace_back(config, i == 0, params.child("layers").child(i));
}

SamStreams SamTwoWayTransformer::forward(const Tensor& tokens, const Tensor& image, const Tensor& image_positions,
                                         const SamImageProjections* projections) const {
  const SamStreams positions{tokens, image_positions};
  SamStreams streams{tokens, image};
  for (const SamTwoWayBlock& layer : layers_) {
    streams = layer.forward(streams, positions, projections);
    projections = nullptr;  // the prompts have changed the image
  }
  const Tensor attended = final_attn_.forward(ops::add(streams.tokens, positions.tokens),
                                              ops::add(streams.image, positions.image), streams.image);
  streams.tokens = norm_final_.forward(ops::add(streams.tokens, attended));
  return streams;
}

SamImageProjections SamTwoWayTransformer::project(const Tensor& image, const Tensor& image_positions) const {
  return layers_[0].project(image, image_positions);
}

void SamTwoWayTransformer::visit(nn::Visitor& visitor) {
  visitor.child("layers", static_cast<nn::Module&>(layers_));
  visitor.child("final_attn_token_to_image", static_cast<nn::Module&>(final_attn_));
  visitor.child("norm_final_attn", static_cast<nn::Module&>(norm_final_));
}

}  // namespace vitrail::models
