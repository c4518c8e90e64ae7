// SPDX-License-Identifier: Apache-2.0
#include "vitrail/explain/claims_internal.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "vitrail/explain/arrays_internal.h"
#include "vitrail/explain/attention_values_internal.h"
#include "vitrail/explain/prediction_internal.h"
#include "vitrail/nn/mlp.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/layer_norm.h"
#include "vitrail/ops/softmax.h"

namespace vitrail::explain {
namespace {

using Json = nlohmann::ordered_json;
using models::GlobalPool;
using models::PositionEmbedding;
using models::VisionTransformerConfig;

const VisionTransformerConfig& vit(const ClaimContext& context) { return context.model.config(); }

// Null if the model has no such parameter.
std::optional<Tensor> parameter(const ClaimContext& context, const std::string& name) {
  for (const nn::NamedTensor& parameter : context.model.named_parameters())
    if (parameter.name == name) return parameter.tensor.contiguous();
  return std::nullopt;
}

struct Moments {
  double mean = 0, variance = 0;
};
Moments moments_of(const float* values, int64_t count) {
  Moments moments;
  for (int64_t i = 0; i < count; ++i) moments.mean += static_cast<double>(values[i]);
  moments.mean /= static_cast<double>(count);
  for (int64_t i = 0; i < count; ++i) {
    const double difference = static_cast<double>(values[i]) - moments.mean;
    moments.variance += difference * difference;
  }
  moments.variance /= static_cast<double>(count);
  return moments;
}
Moments moments_of(const Tensor& tensor) {
  const Tensor values = tensor.contiguous();
  return moments_of(values.data<float>(), values.numel());
}

double dot(const float* a, const float* b, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}
double cosine(const float* a, const float* b, int64_t count) {
  return dot(a, b, count) / std::sqrt(dot(a, a, count) * dot(b, b, count));
}

// --- Patches and tokens

// The convolution as a sum over the pixels of the image, for the first channels.
Json conv_is_linear(const ClaimContext& context) {
  constexpr int64_t kChannels = 8;
  const auto weight = parameter(context, "patch_embed.proj.weight");
  if (!weight || parameter(context, "patch_embed.input_norm.weight")) return nullptr;
  const auto bias = parameter(context, "patch_embed.proj.bias");
  const Tensor images = context.forward.at("images").contiguous();
  const Tensor projected = context.forward.at("patch_embed.proj").contiguous();  // [1, D, rows, columns]
  const int64_t depth = images.size(1), height = images.size(2), width = images.size(3);
  const int64_t rows = projected.size(2), columns = projected.size(3);
  const auto [patch_height, patch_width] = vit(context).patch_size;
  double difference = 0;
  for (int64_t d = 0; d < std::min(kChannels, projected.size(1)); ++d) {
    for (int64_t patch = 0; patch < rows * columns; ++patch) {
      double sum = bias ? static_cast<double>(bias->data<float>()[d]) : 0;
      for (int64_t c = 0; c < depth; ++c) {
        for (int64_t y = 0; y < patch_height; ++y) {
          const int64_t row = (c * height + patch / columns * patch_height + y) * width;
          sum += dot(images.data<float>() + row + patch % columns * patch_width,
                     weight->data<float>() + ((d * depth + c) * patch_height + y) * patch_width, patch_width);
        }
      }
      const float found = projected.data<float>()[d * rows * columns + patch];
      difference = std::max(difference, std::fabs(sum - static_cast<double>(found)));
    }
  }
  return {{"difference", finite_or_text(difference)}};
}

std::array<int64_t, 2> grid_of(const ClaimContext& context) {
  const Tensor& images = context.forward.at("images");
  return context.model.grid_of(images.size(2), images.size(3));
}

Json patch_count(const ClaimContext& context) {
  const auto [rows, columns] = grid_of(context);
  const int64_t prefix = context.model.num_prefix_tokens();
  return {{"rows", rows},
          {"columns", columns},
          {"patches", rows * columns},
          {"prefix", prefix},
          {"tokens", context.forward.at("embedded").size(1)}};
}

Json sequence_shape(const ClaimContext& context) {
  const auto [rows, columns] = grid_of(context);
  return {{"width", vit(context).embed_dim}, {"rows", rows}, {"columns", columns}, {"patches", rows * columns}};
}

// PE(p, 2i) = sin(p / 10000^(2i/D)), PE(p, 2i + 1) = cos(…) (Vaswani et al. 2017, section 3.5).
// They are what the input of the blocks has beyond the embedded patches.
Json sinusoid_positions(const ClaimContext& context) {
  if (vit(context).pos_embed != PositionEmbedding::sinusoidal) return nullptr;
  const Tensor tokens = context.forward.at("embedded").contiguous();
  const Tensor patches = context.forward.at("patch_embed").contiguous();
  const int64_t prefix = context.model.num_prefix_tokens(), width = patches.size(2);
  const int64_t first = vit(context).no_embed_class ? 0 : prefix;  // the position of the first patch
  double difference = 0;
  for (int64_t p = 0; p < patches.size(1); ++p) {
    for (int64_t i = 0; i < width; ++i) {
      const double angle = static_cast<double>(first + p) /
                           std::pow(10000.0, static_cast<double>(i / 2 * 2) / static_cast<double>(width));
      const double expected = i % 2 == 0 ? std::sin(angle) : std::cos(angle);
      const auto found = static_cast<double>(tokens.data<float>()[(prefix + p) * width + i]) -
                         static_cast<double>(patches.data<float>()[p * width + i]);
      difference = std::max(difference, std::fabs(expected - found));
    }
  }
  return {{"difference", finite_or_text(difference)}};
}

// The mean cosine of a patch's position with those of its four neighbours, and with that of the farthest patch.
Json learned_positions(const ClaimContext& context) {
  const auto positions = parameter(context, "pos_embed");
  const auto [rows, columns] = grid_of(context);
  if (vit(context).pos_embed != PositionEmbedding::learned || !positions || rows < 2 || columns < 2) return nullptr;
  const int64_t prefix = positions->size(1) - rows * columns, width = positions->size(2);
  if (prefix < 0) return nullptr;
  const auto similarity = [&, of_patches = positions->data<float>() + prefix * width, columns = columns](
                              int64_t y, int64_t x, int64_t to_y, int64_t to_x) {
    return cosine(of_patches + (y * columns + x) * width, of_patches + (to_y * columns + to_x) * width, width);
  };
  double near = 0, far = 0;
  int64_t neighbours = 0;
  for (int64_t y = 0; y < rows; ++y) {
    for (int64_t x = 0; x < columns; ++x) {
      if (x + 1 < columns) near += similarity(y, x, y, x + 1), ++neighbours;
      if (y + 1 < rows) near += similarity(y, x, y + 1, x), ++neighbours;
      far += similarity(y, x, 2 * y < rows ? rows - 1 : 0, 2 * x < columns ? columns - 1 : 0);
    }
  }
  return {{"near", finite_or_text(near / static_cast<double>(neighbours))},
          {"far", finite_or_text(far / static_cast<double>(rows * columns))}};
}

// --- A block

// Each element of qkv [1, N, 3·H·d] is found in qkv_reshaped [1, N, 3, H, d] and in qkv_permuted [3, 1, H, N, d].
Json qkv_layouts(const ClaimContext& context) {
  const std::string qkv = in_block(0, "attn.qkv"), layout = in_block(0, "attn.qkv_reshaped");
  if (!context.forward.has(qkv) || !context.forward.has(layout)) return nullptr;
  const Tensor flat = context.forward.at(qkv).contiguous(), reshaped = context.forward.at(layout).contiguous();
  const Tensor permuted = context.forward.at(in_block(0, "attn.qkv_permuted")).contiguous();
  const int64_t tokens = flat.size(1), heads = reshaped.size(3), head_dim = reshaped.size(4);
  int64_t mismatches = 0;
  for (int64_t n = 0; n < tokens; ++n) {
    for (int64_t part = 0; part < 3; ++part) {
      for (int64_t h = 0; h < heads; ++h) {
        for (int64_t c = 0; c < head_dim; ++c) {
          const float value = flat.data<float>()[n * 3 * heads * head_dim + (part * heads + h) * head_dim + c];
          const float in_reshaped = reshaped.data<float>()[((n * 3 + part) * heads + h) * head_dim + c];
          const float in_permuted = permuted.data<float>()[((part * heads + h) * tokens + n) * head_dim + c];
          if (value != in_reshaped || value != in_permuted) ++mismatches;
        }
      }
    }
  }
  return {{"width3", flat.size(2)},
          {"heads", heads},
          {"head_dim", head_dim},
          {"tokens", tokens},
          {"mismatches", mismatches}};
}

Json scale_variance(const ClaimContext& context) {
  const double scale = attention_scale(vit(context));
  const Tensor q = context.forward.at(in_block(0, "attn.q")), k = context.forward.at(in_block(0, "attn.k"));
  const double before = moments_of(attention_scores(q, k, {}, 1)).variance;
  return {{"before", finite_or_text(before)},
          {"after", finite_or_text(moments_of(attention_scores(q, k, {}, scale)).variance)},
          {"scale", scale},
          {"head_dim", q.size(3)}};
}

Tensor weights_of(const ClaimContext& context, int64_t block) {
  const std::string bias = in_block(block, "attn.bias");
  return ops::softmax(attention_scores(context.forward.at(in_block(block, "attn.q")),
                                       context.forward.at(in_block(block, "attn.k")),
                                       context.forward.has(bias) ? context.forward.at(bias) : Tensor(),
                                       attention_scale(vit(context))))
      .contiguous();
}

Json softmax_rows(const ClaimContext& context) {
  return {{"deviation", finite_or_text(row_sum_deviation(weights_of(context, 0)))}};
}

Json heads_differ(const ClaimContext& context) {
  double lowest = 1, highest = -1;
  for (int64_t block = 0; block < vit(context).depth; ++block) {
    const Tensor weights = weights_of(context, block);
    const int64_t heads = weights.size(1), elements = weights.size(2) * weights.size(3);
    for (int64_t a = 0; a < heads; ++a) {
      for (int64_t b = a + 1; b < heads; ++b) {
        const float* const values = weights.data<float>();
        const double similarity = cosine(values + a * elements, values + b * elements, elements);
        lowest = std::min(lowest, similarity);
        highest = std::max(highest, similarity);
      }
    }
  }
  if (lowest > highest) return nullptr;  // one head
  return {{"min", finite_or_text(lowest)}, {"max", finite_or_text(highest)}};
}

Json merge_restores(const ClaimContext& context) {
  const Tensor& q = context.forward.at(in_block(0, "attn.q"));
  return {{"heads", q.size(1)}, {"head_dim", q.size(3)}, {"width", q.size(1) * q.size(3)}};
}

// A score of −∞ is a mask: softmax gives it the weight 0.
Json mask_excludes(const ClaimContext& context) {
  const Tensor scores = attention_scores(context.forward.at(in_block(0, "attn.q")),
                                         context.forward.at(in_block(0, "attn.k")), {}, attention_scale(vit(context)));
  const int64_t tokens = scores.size(-1);
  const Tensor row = scores.view({-1, tokens}).narrow(0, 0, 1).clone();
  row.data<float>()[tokens - 1] = -std::numeric_limits<float>::infinity();
  const Tensor weights = ops::softmax(row).contiguous();
  double sum = 0;
  for (int64_t i = 0; i < tokens; ++i) sum += static_cast<double>(weights.data<float>()[i]);
  return {{"weight", finite_or_text(static_cast<double>(weights.data<float>()[tokens - 1]))},
          {"sum", finite_or_text(sum)}};
}

// Without ε, which makes the variance of small tokens smaller.
Json layer_norm(const ClaimContext& context) {
  constexpr double kNoEpsilon = 1e-20;
  const Tensor tokens = ops::layer_norm(context.forward.at(input_of(0)).contiguous(), {}, {}, kNoEpsilon);
  const int64_t width = tokens.size(-1);
  Moments worst{0, 1};
  for (int64_t token = 0; token < tokens.size(1); ++token) {
    const Moments moments = moments_of(tokens.data<float>() + token * width, width);
    if (std::fabs(moments.mean) > std::fabs(worst.mean)) worst.mean = moments.mean;
    if (std::fabs(moments.variance - 1) > std::fabs(worst.variance - 1)) worst.variance = moments.variance;
  }
  return {{"mean", finite_or_text(worst.mean)}, {"variance", finite_or_text(worst.variance)}};
}

Json mlp_widths(const ClaimContext& context) {
  const auto weight = parameter(context, in_block(0, "mlp.fc1.weight"));
  if (!weight) return nullptr;
  const auto bias = parameter(context, in_block(0, "mlp.fc1.bias"));
  return {{"width", weight->size(1)},
          {"hidden", weight->size(0)},
          {"parameters", weight->numel() + (bias ? bias->numel() : 0)}};
}

// A slip of some implementations: the size of a patch given as the width of the MLP.
Json mlp_is_patch(const ClaimContext& context) {
  const auto weight = parameter(context, in_block(0, "mlp.fc1.weight"));
  if (!weight || weight->size(0) != vit(context).patch_size[0]) return nullptr;
  return {{"hidden", weight->size(0)}, {"patch", vit(context).patch_size[0]}};
}

// The tokens in reverse order give the results in reverse order.
Json mlp_per_token(const ClaimContext& context) {
  const nn::Mlp* mlp = nullptr;
  for (const auto& [name, module] : context.model.named_modules())
    if (name == in_block(0, "mlp")) mlp = dynamic_cast<const nn::Mlp*>(module);
  if (!mlp) return nullptr;
  const auto reversed = [](const Tensor& x) {
    const Tensor rows = x.contiguous(), result = Tensor::empty(x.shape());
    const int64_t count = rows.size(1), width = rows.size(2);
    for (int64_t i = 0; i < count; ++i)
      std::copy_n(rows.data<float>() + i * width, width, result.data<float>() + (count - 1 - i) * width);
    return result;
  };
  const Tensor tokens = context.forward.at(in_block(0, "residual1")).contiguous();
  return {
      {"difference", finite_or_text(max_difference(reversed(mlp->forward(tokens)), mlp->forward(reversed(tokens))))}};
}

// What the branches add, and its norm as a share of that of the stream: the mean over blocks and tokens.
Json residual_keeps(const ClaimContext& context) {
  if (!vit(context).norm_first && !vit(context).use_post_norm) return nullptr;
  double difference = 0, share = 0;
  for (int64_t block = 0; block < vit(context).depth; ++block) {
    const Tensor input = context.forward.at(input_of(block)).contiguous();
    const Tensor output = context.forward.at(in_block(block, "residual2")).contiguous();
    const Tensor update = ops::add(context.forward.at(in_block(block, "drop_path1")).contiguous(),
                                   context.forward.at(in_block(block, "drop_path2")).contiguous());
    difference = std::max(difference, max_difference(ops::add(input, update), output));
    const int64_t width = input.size(2), tokens = input.size(1);
    for (int64_t token = 0; token < tokens; ++token) {
      const float* const added = update.data<float>() + token * width;
      const float* const kept = input.data<float>() + token * width;
      share += std::sqrt(dot(added, added, width) / dot(kept, kept, width)) / static_cast<double>(tokens);
    }
  }
  return {{"difference", finite_or_text(difference)},
          {"share", finite_or_text(share / static_cast<double>(vit(context).depth))}};
}

// --- Parameters

Json blocks_differ(const ClaimContext& context) {
  double lowest = std::numeric_limits<double>::infinity();
  for (int64_t block = 1; block < vit(context).depth; ++block) {
    const auto a = parameter(context, in_block(block - 1, "mlp.fc1.weight"));
    const auto b = parameter(context, in_block(block, "mlp.fc1.weight"));
    if (!a || !b) return nullptr;
    const double aa = dot(a->data<float>(), a->data<float>(), a->numel());
    const double bb = dot(b->data<float>(), b->data<float>(), b->numel());
    const double ab = dot(a->data<float>(), b->data<float>(), a->numel());
    lowest = std::min(lowest, std::sqrt(std::max(0.0, aa + bb - 2 * ab) / aa));
  }
  if (std::isinf(lowest)) return nullptr;  // one block
  return {{"min", finite_or_text(lowest)}};
}

// Xavier's standard deviation is √(2 / (inputs + outputs)) (Glorot & Bengio 2010, eq. 16).
Json fc1_spread(const ClaimContext& context) {
  const auto weight = parameter(context, in_block(0, "mlp.fc1.weight"));
  const auto bias = parameter(context, in_block(0, "mlp.fc1.bias"));
  if (!weight || !bias) return nullptr;
  return {{"std", finite_or_text(std::sqrt(moments_of(*weight).variance))},
          {"xavier", std::sqrt(2.0 / static_cast<double>(weight->size(0) + weight->size(1)))},
          {"bias_std", finite_or_text(std::sqrt(moments_of(*bias).variance))}};
}

Json parameter_count(const ClaimContext& context) {
  const auto weight = parameter(context, in_block(0, "mlp.fc1.weight"));
  if (!weight) return nullptr;
  const auto bias = parameter(context, in_block(0, "mlp.fc1.bias"));
  return {{"parameters", context.model.num_parameters()}, {"fc1", weight->numel() + (bias ? bias->numel() : 0)}};
}

// --- Predictions

Json class_head(const ClaimContext& context) {
  const VisionTransformerConfig& config = vit(context);
  const auto weight = parameter(context, "head.weight");
  const auto bias = parameter(context, "head.bias");
  const bool is_plain = config.global_pool == GlobalPool::token && !config.dist_token && config.head_hidden == 0 &&
                        !config.fc_norm.value_or(false) && config.final_norm;
  if (!is_plain || !weight || !bias || config.projection_head) return nullptr;
  const Tensor tokens = context.forward.at("norm").contiguous(), logits = context.forward.at("logits").contiguous();
  double difference = 0;
  for (int64_t i = 0; i < weight->size(0); ++i) {
    const double logit = dot(tokens.data<float>(), weight->data<float>() + i * weight->size(1), weight->size(1)) +
                         static_cast<double>(bias->data<float>()[i]);
    difference = std::max(difference, std::fabs(logit - static_cast<double>(logits.data<float>()[i])));
  }
  return {{"difference", finite_or_text(difference)}};
}

Json probabilities_sum(const ClaimContext& context) {
  if (context.gradients.is_null() || std::string(models::activation_of(context.config)) != "softmax") return nullptr;
  double sum = 0;
  for (const double probability : probabilities_of(context.config, context.forward.at("logits").contiguous()))
    sum += probability;
  return {{"sum", finite_or_text(sum)}};
}

// logit = scale · cosine + bias
Json text_logits(const ClaimContext& context) {
  if (context.texts.is_null()) return nullptr;
  const double scale = context.texts["scale"].get<double>(), bias = context.texts["bias"].get<double>();
  double difference = 0;
  for (const Json& row : context.texts["rows"]) {
    if (!row["cosine"].is_number() || !row["logit"].is_number()) continue;
    const double expected = scale * row["cosine"].get<double>() + bias;
    difference = std::max(difference, std::fabs(expected - row["logit"].get<double>()));
  }
  return {{"scale", scale}, {"bias", bias}, {"difference", finite_or_text(difference)}};
}

Json finite_difference(const ClaimContext& context) {
  if (context.gradients.is_null() || context.gradients["check"].is_null()) return nullptr;
  const Json& check = context.gradients["check"];
  return {{"analytic", check["analytic"]}, {"numerical", check["numerical"]}, {"name", check["name"]}};
}

Json completeness(const ClaimContext& context) {
  if (context.attributions.is_null()) return nullptr;
  for (const Json& row : context.attributions)
    if (row.contains("completeness")) return row["completeness"];
  return nullptr;
}

}  // namespace

const std::vector<Claim>& claims() {
  static const std::vector<Claim> rows{
      {"conv_is_linear", conv_is_linear},
      {"patch_count", patch_count},
      {"sequence_shape", sequence_shape},
      {"sinusoid_positions", sinusoid_positions},
      {"learned_positions", learned_positions},
      {"layer_norm", layer_norm},
      {"qkv_layouts", qkv_layouts},
      {"scale_variance", scale_variance},
      {"softmax_rows", softmax_rows},
      {"mask_excludes", mask_excludes},
      {"heads_differ", heads_differ},
      {"merge_restores", merge_restores},
      {"mlp_widths", mlp_widths},
      {"mlp_is_patch", mlp_is_patch},
      {"mlp_per_token", mlp_per_token},
      {"residual_keeps", residual_keeps},
      {"blocks_differ", blocks_differ},
      {"fc1_spread", fc1_spread},
      {"parameter_count", parameter_count},
      {"class_head", class_head},
      {"probabilities_sum", probabilities_sum},
      {"text_logits", text_logits},
      {"completeness", completeness},
      {"finite_difference", finite_difference},
  };
  return rows;
}

Json measured_claims(const ClaimContext& context) {
  Json rows = Json::array();
  for (const Claim& claim : claims()) {
    const Json values = claim.measure(context);
    if (!values.is_null()) rows.push_back({{"id", claim.id}, {"values", values}});
  }
  return rows;
}

}  // namespace vitrail::explain
