// SPDX-License-Identifier: Apache-2.0
#include "vitrail/explain/segmentation_claims_internal.h"

#include <algorithm>
#include <cmath>

#include "vitrail/explain/arrays_internal.h"
#include "vitrail/explain/attention_values_internal.h"
#include "vitrail/ops/layer_norm.h"

namespace vitrail::explain {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kCrossAttention = "mask_decoder.transformer.layers.0.cross_attn_token_to_image.";

// C → C/r and back; heads share the narrow width.
Json sam_downsampled(const SegmentationContext& context) {
  const Tensor& q = context.values.at(std::string(kCrossAttention) + "q");
  return {{"width", context.sam.config().decoder.dim},
          {"inner", q.size(1) * q.size(3)},
          {"heads", q.size(1)},
          {"head_dim", q.size(3)}};
}

Json sam_tokens(const SegmentationContext& context) {
  const int64_t masks = context.sam.config().decoder.mask_tokens;
  return {{"masks", masks}, {"prompts", context.prompt_tokens}, {"tokens", 1 + masks + context.prompt_tokens}};
}

Json sam_softmax(const SegmentationContext& context) {
  return {
      {"deviation", finite_or_text(row_sum_deviation(context.values.at(std::string(kCrossAttention) + "weights")))}};
}

// MLPBlock of the two-way transformer.
Json sam_mlp(const SegmentationContext& context) {
  return {{"width", context.sam.config().decoder.dim}, {"hidden", context.sam.config().decoder.mlp_hidden}};
}

// LayerNorm2d normalises the channels at each position: those of the neck, before γ and β.
Json sam_norm_2d(const SegmentationContext& context) {
  const auto input = context.values.find("image_encoder.neck.0");
  if (input == context.values.end()) return nullptr;
  const Tensor rows = ops::layer_norm(input->second.contiguous(), {}, {}, 1e-20);
  const int64_t channels = rows.size(-1);
  double worst_mean = 0, worst_variance = 1;
  for (int64_t row = 0; row < rows.numel() / channels; ++row) {
    double mean = 0, variance = 0;
    const float* const x = rows.data<float>() + row * channels;
    for (int64_t i = 0; i < channels; ++i) mean += static_cast<double>(x[i]) / static_cast<double>(channels);
    for (int64_t i = 0; i < channels; ++i) {
      const double difference = static_cast<double>(x[i]) - mean;
      variance += difference * difference / static_cast<double>(channels);
    }
    if (std::fabs(mean) > std::fabs(worst_mean)) worst_mean = mean;
    if (std::fabs(variance - 1) > std::fabs(worst_variance - 1)) worst_variance = variance;
  }
  return {{"channels", channels}, {"mean", finite_or_text(worst_mean)}, {"variance", finite_or_text(worst_variance)}};
}

// A mask is the product of its hypernetwork's vector with the upscaled embedding at each position.
Json sam_mask_product(const SegmentationContext& context) {
  if (context.sam.config().decoder.high_quality) return nullptr;  // adds a term of its own
  const Tensor masks = context.values.at("low_res_masks").contiguous();
  const Tensor upscaled = context.values.at("mask_decoder.output_upscaling").contiguous();  // [1, h, w, C]
  const int64_t pixels = masks.size(2) * masks.size(3), channels = upscaled.size(3);
  double difference = 0;
  for (int64_t mask = 0; mask < masks.size(1); ++mask) {
    const Tensor vector =
        context.values.at("mask_decoder.output_hypernetworks_mlps." + std::to_string(mask)).contiguous();
    for (int64_t at = 0; at < pixels; ++at) {
      double sum = 0;
      for (int64_t i = 0; i < channels; ++i)
        sum += static_cast<double>(vector.data<float>()[i]) *
               static_cast<double>(upscaled.data<float>()[at * channels + i]);
      const auto found = static_cast<double>(masks.data<float>()[mask * pixels + at]);
      difference = std::max(difference, std::fabs(sum - found));
    }
  }
  return {{"channels", channels}, {"side", masks.size(2)}, {"difference", finite_or_text(difference)}};
}

}  // namespace

const std::vector<SegmentationClaim>& segmentation_claims() {
  static const std::vector<SegmentationClaim> rows{
      {"sam_norm_2d", sam_norm_2d}, {"sam_tokens", sam_tokens}, {"sam_downsampled", sam_downsampled},
      {"sam_softmax", sam_softmax}, {"sam_mlp", sam_mlp},       {"sam_mask_product", sam_mask_product},
  };
  return rows;
}

}  // namespace vitrail::explain
