// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/sam/prompt_encoder.h"

#include <cmath>
#include <numbers>

#include "vitrail/base/error.h"
#include "vitrail/nn/init.h"
#include "vitrail/nn/trace.h"
#include "vitrail/ops/activation.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/embedding.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::models {
namespace {

constexpr double kMaskNormEps = 1e-6;

Tensor embedding_of(const ParamSource& params, const std::string& name, int64_t dim) {
  return params.get(name + ".weight", {1, dim}, nn::init::normal(1));  // as torch.nn.Embedding
}

std::array<Tensor, 4> point_embeddings_of(const ParamSource& params, int64_t dim) {
  std::array<Tensor, 4> embeddings;
  for (size_t i = 0; i < 4; ++i) embeddings[i] = embedding_of(params, str("point_embeddings.", i), dim);
  return embeddings;
}

}  // namespace

SamPromptEncoder::SamPromptEncoder(const SamConfig& config, const ParamSource& params)
    : Module(params.path()),
      config_(config),
      gaussian_(
          params.get("pe_layer.positional_encoding_gaussian_matrix", {2, config.decoder.dim / 2}, nn::init::normal(1))),
      point_embeddings_(point_embeddings_of(params, config.decoder.dim)),
      not_a_point_(embedding_of(params, "not_a_point_embed", config.decoder.dim)),
      no_mask_(embedding_of(params, "no_mask_embed", config.decoder.dim)),
      conv1_({.in_chans = 1, .out_chans = config.decoder.mask_chans[0], .kernel = 2},
             params.child("mask_downscaling.0")),
      norm1_(config.decoder.mask_chans[0], kMaskNormEps, params.child("mask_downscaling.1")),
      conv2_({.in_chans = config.decoder.mask_chans[0], .out_chans = config.decoder.mask_chans[1], .kernel = 2},
             params.child("mask_downscaling.3")),
      norm2_(config.decoder.mask_chans[1], kMaskNormEps, params.child("mask_downscaling.4")),
      conv3_({.in_chans = config.decoder.mask_chans[1], .out_chans = config.decoder.dim},
             params.child("mask_downscaling.6")) {}

void SamPromptEncoder::encode(double x, double y, float* to) const {
  const int64_t half = config_.decoder.dim / 2;
  const float* const matrix = gaussian_.data<float>();
  for (int64_t i = 0; i < half; ++i) {
    const double phase = 2 * std::numbers::pi * ((2 * x - 1) * matrix[i] + (2 * y - 1) * matrix[half + i]);
    to[i] = static_cast<float>(std::sin(phase));
    to[half + i] = static_cast<float>(std::cos(phase));
  }
}

Tensor SamPromptEncoder::points(const Tensor& coordinates, const std::vector<SamPoint>& kinds) const {
  const bool fits = coordinates.rank() == 3 && coordinates.size(2) == 2 &&
                    coordinates.size(0) * coordinates.size(1) == static_cast<int64_t>(kinds.size());
  if (!fits) {
    throw Error("prompt encoder", str("points [B, N, 2] for ", kinds.size(), " labels"),
                coordinates.shape().to_string());
  }
  const int64_t dim = config_.decoder.dim;
  const auto size = static_cast<double>(config_.encoder.image_size());
  const Tensor at = coordinates.detach().to(DType::f64).contiguous();
  const Tensor encoded = Tensor::zeros({coordinates.size(0), coordinates.size(1), dim});
  const Tensor ids = Tensor::empty({coordinates.size(0), coordinates.size(1)}, DType::i64);
  for (size_t i = 0; i < kinds.size(); ++i) {
    ids.data<int64_t>()[i] = static_cast<int64_t>(kinds[i]) + 1;
    if (kinds[i] == SamPoint::padding) continue;  // has its embedding alone
    const double* const point = at.data<double>() + 2 * i;
    encode((point[0] + 0.5) / size, (point[1] + 0.5) / size, encoded.data<float>() + static_cast<int64_t>(i) * dim);
  }
  const Tensor table = ops::cat(
      {not_a_point_, point_embeddings_[0], point_embeddings_[1], point_embeddings_[2], point_embeddings_[3]}, 0);
  const Tensor result = ops::add(ops::embedding(ids, table), encoded);
  trace(*this, "sparse_embeddings", result);
  return result;
}

Tensor SamPromptEncoder::mask(const Tensor& logits) const {
  const int64_t size = config_.mask_size();
  if (logits.rank() != 4 || logits.size(1) != 1 || logits.size(2) != size || logits.size(3) != size) {
    throw Error("prompt encoder", str("mask logits [B, 1, ", size, ", ", size, "]"), logits.shape().to_string());
  }
  using kernels::Activation;
  Tensor x = logits.view({logits.size(0), size, size, 1});  // one channel: also channels last
  x = ops::activation(norm1_.forward(conv1_.forward(x)), Activation::gelu);
  x = ops::activation(norm2_.forward(conv2_.forward(x)), Activation::gelu);
  return conv3_.forward(x);
}

Tensor SamPromptEncoder::no_mask() const { return no_mask_.view({1, 1, 1, config_.decoder.dim}); }

Tensor SamPromptEncoder::grid_positions() const {
  const int64_t grid = config_.encoder.grid, dim = config_.decoder.dim;
  Tensor positions = Tensor::empty({1, grid, grid, dim});
  for (int64_t y = 0; y < grid; ++y) {
    for (int64_t x = 0; x < grid; ++x) {
      encode((static_cast<double>(x) + 0.5) / static_cast<double>(grid),
             (static_cast<double>(y) + 0.5) / static_cast<double>(grid),
             positions.data<float>() + (y * grid + x) * dim);
    }
  }
  return positions;
}

void SamPromptEncoder::visit(nn::Visitor& visitor) {
  visitor.parameter("pe_layer.positional_encoding_gaussian_matrix", gaussian_);
  for (size_t i = 0; i < point_embeddings_.size(); ++i) {
    visitor.parameter(str("point_embeddings.", i, ".weight"), point_embeddings_[i]);
  }
  visitor.parameter("not_a_point_embed.weight", not_a_point_);
  visitor.child("mask_downscaling.0", static_cast<nn::Module&>(conv1_));
  visitor.child("mask_downscaling.1", static_cast<nn::Module&>(norm1_));
  visitor.child("mask_downscaling.3", static_cast<nn::Module&>(conv2_));
  visitor.child("mask_downscaling.4", static_cast<nn::Module&>(norm2_));
  visitor.child("mask_downscaling.6", static_cast<nn::Module&>(conv3_));
  visitor.parameter("no_mask_embed.weight", no_mask_);
}

}  // namespace vitrail::models
