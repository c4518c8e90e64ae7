// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/mae/decoder.h"

#include "vitrail/models/layer_configs_internal.h"
#include "vitrail/models/mae/initial_params.h"
#include "vitrail/nn/trace.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/layout.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::models {
namespace {

nn::init::LinearInit mae_linear_init(int64_t in, int64_t out) {
  return {nn::init::xavier_uniform(in, out), nn::init::zeros()};
}

}  // namespace

MaeDecoder::MaeDecoder(const MaskedAutoencoderConfig& config, const ParamSource& params)
    : Module(params.path()),
      config_(decoder_blocks_of(config)),
      embed_(config.encoder.embed_dim, config.decoder_dim, true, params.child("embed"),
             mae_linear_init(config.encoder.embed_dim, config.decoder_dim)),
      blocks_(params.child("blocks").path()),
      norm_(config.decoder_dim, config_.norm_eps, params.child("norm")),
      pred_(config.decoder_dim, config.patch_pixels(), true, params.child("pred"),
            mae_linear_init(config.decoder_dim, config.patch_pixels())) {
  const std::array<int64_t, 2> grid = own_grid(config_);
  const int64_t dim = config.decoder_dim, tokens = prefix_of(config.encoder) + grid[0] * grid[1];
  mask_token_ = params.get("mask_token", {1, 1, dim}, nn::init::normal(0.02));
  pos_embed_ = params.get("pos_embed", {1, tokens, dim}, fixed_positions(grid));
  for (int64_t i = 0; i < config_.depth; ++i)
    blocks_.emplace_back(block_config(config_, i), params.child("blocks").child(i));
}

// tokens [B, prefix + K, D] → [B, prefix + patches, D], all patches in their places.
Tensor MaeDecoder::with_mask_tokens(const Tensor& tokens, const PatchIndices& kept, int64_t patches) const {
  const int64_t prefix = tokens.size(1) - std::ssize(kept.front()), mask_token = tokens.size(1);
  PatchIndices sources(kept.size(), std::vector<int64_t>(static_cast<size_t>(prefix + patches), mask_token));
  for (size_t b = 0; b < kept.size(); ++b) {
    for (int64_t i = 0; i < prefix; ++i) sources[b][static_cast<size_t>(i)] = i;
    for (size_t k = 0; k < kept[b].size(); ++k)
      sources[b][static_cast<size_t>(prefix + kept[b][k])] = prefix + static_cast<int64_t>(k);
  }
  const Tensor mask_tokens = mask_token_.to(tokens.dtype()).expand({tokens.size(0), 1, tokens.size(2)});
  return ops::gather_tokens(ops::cat({tokens, mask_tokens}, 1), sources);
}

Tensor MaeDecoder::forward(const Tensor& tokens, const PatchIndices& kept, std::array<int64_t, 2> grid) const {
  const int64_t patches = grid[0] * grid[1], prefix = tokens.size(1) - std::ssize(kept.front());
  const Tensor embedded = embed_.forward(tokens).to(tokens.dtype());  // the residual stream stays f32
  const Tensor positions = nn::resample_positions(pos_embed_, prefix, own_grid(config_), grid, config_.pos_interp);
  Tensor x = ops::add(with_mask_tokens(embedded, kept, patches), positions.to(tokens.dtype()));
  for (const nn::Block& block : blocks_) x = block.forward(x);
  const Tensor predictions = pred_.forward(norm_.forward(x)).to(tokens.dtype());
  return nn::traced(*this, ops::contiguous(predictions.narrow(1, prefix, patches)));
}

void MaeDecoder::visit(nn::Visitor& visitor) {
  visitor.parameter("mask_token", mask_token_);
  visitor.parameter("pos_embed", pos_embed_);
  visitor.child("embed", static_cast<nn::Module&>(embed_));
  visitor.child("blocks", static_cast<nn::Module&>(blocks_));
  visitor.child("norm", static_cast<nn::Module&>(norm_));
  visitor.child("pred", static_cast<nn::Module&>(pred_));
}

}  // namespace vitrail::models
