// SPDX-License-Identifier: Apache-2.0
#include "vitrail/pipeline/attribution.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "vitrail/analysis/attention_relevance.h"
#include "vitrail/analysis/patch_removal.h"
#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/models/class_gradients.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/linear.h"
#include "vitrail/pipeline/class_names.h"

namespace vitrail::pipeline {
namespace {

using analysis::DifferentiatedAttention;
using models::GlobalPool;

analysis::PatchGrid patches_of(const AttributedImage& image) {
  return {image.differentiable.grid_of(image.input.size(2), image.input.size(3)),
          image.differentiable.config().patch_size};
}

void report_pass(const AttributedImage& image) {
  if (image.progress) image.progress(0, -1);
}

analysis::GradientAt gradient_of(const AttributedImage& image) {
  return [&image](const Tensor& at) {
    report_pass(image);
    const ComputeTeam team(image.model.session().threads());
    return models::class_gradients(image.differentiable, at, {.target = image.target})[0];
  };
}

analysis::ScoresOf scores_of(const AttributedImage& image) {
  return [&image](const Tensor& images) {
    report_pass(image);
    const Tensor logits = image.model.session().logits(images);
    std::vector<float> scores;
    for (int64_t row = 0; row < logits.size(0); ++row)
      scores.push_back(logits.data<float>()[row * logits.size(1) + image.target]);
    return scores;
  };
}

// Black pixels as the model's input has them.
Tensor black(const AttributedImage& image) {
  const image::EvalTransform& transform = image.model.transform();
  const Tensor result = Tensor::empty(image.input.shape());
  const int64_t pixels = image.input.size(2) * image.input.size(3);
  for (int64_t channel = 0; channel < image.input.size(1); ++channel) {
    const auto of = [&](const std::vector<double>& values) {
      return values[std::min(static_cast<size_t>(channel), values.size() - 1)];
    };
    std::fill_n(result.data<float>() + channel * pixels, pixels,
                static_cast<float>(-of(transform.mean) / of(transform.std)));
  }
  return result;
}

Tensor baseline_of(const AttributedImage& image) {
  if (image.baseline == "black") return black(image);
  return image.baseline == "blurred" ? analysis::blurred(image.input) : analysis::mean_color(image.input);
}

// What a backward pass gives of attention: of the blocks, and of attention pooling if the model has it.
struct Differentiated {
  std::vector<DifferentiatedAttention> blocks;
  std::optional<DifferentiatedAttention> pool;
};

// Only the gradients of contexts are kept; those of weights would take N / d times the memory.
Differentiated differentiate(const AttributedImage& image, int64_t first_block) {
  report_pass(image);
  const models::VisionTransformerConfig& config = image.differentiable.config();
  std::vector<std::string> layers;
  for (int64_t i = first_block; i < config.depth; ++i) layers.push_back(str("blocks.", i, ".attn"));
  if (config.global_pool == GlobalPool::map) layers.emplace_back("attn_pool");
  models::ClassGradientOptions options{.target = image.target, .values = {}};
  for (const std::string& layer : layers) options.values.push_back(layer + ".context");
  std::map<std::string, Tensor> values;
  options.on_value = [&](const std::string& name, const Tensor& value) {
    for (const std::string& layer : layers) {
      if (name == layer + ".weights" || name == layer + ".v") values[name] = value.detach().select(0, 0);
    }
  };
  const ComputeTeam team(image.model.session().threads());
  const std::vector<Tensor> gradients = models::class_gradients(image.differentiable, image.input, options);
  Differentiated result;
  for (size_t i = 0; i < layers.size(); ++i) {
    DifferentiatedAttention attention{values.at(layers[i] + ".weights"), values.at(layers[i] + ".v"),
                                      gradients[i].select(0, 0).contiguous()};
    if (layers[i] == "attn_pool") {
      result.pool = attention;
    } else {
      result.blocks.push_back(attention);
    }
  }
  return result;
}

// The share of each token in what the head reads [N]: the class token, with the distillation token for both heads, or
// the mean over patches, or both.  pool: attention pooling, which gives the relevance of each token for it.
Tensor readers_of(const models::VisionTransformer& model, int64_t tokens,
                  const std::optional<DifferentiatedAttention>& pool) {
  const GlobalPool kind = model.config().global_pool;
  const int64_t prefix = model.num_prefix_tokens(), heads = model.num_head_tokens();
  const Tensor readers = Tensor::zeros({tokens});
  float* const share = readers.data<float>();
  if (pool) {
    const Tensor relevance = analysis::positive_relevance(*pool).contiguous();  // [1, tokens that are pooled]
    std::copy_n(relevance.data<float>(), relevance.numel(), share + tokens - relevance.numel());
    return readers;
  }
  if (kind == GlobalPool::token) {
    std::fill_n(share, heads, 1.0f / static_cast<float>(heads));
    return readers;
  }
  const float of_patches = kind == GlobalPool::token_avg ? 0.5f : 1.0f;
  if (kind == GlobalPool::token_avg) share[0] = 0.5f;
  std::fill(share + prefix, share + tokens, of_patches / static_cast<float>(tokens - prefix));
  return readers;
}

Tensor on_grid(const Tensor& patches, const AttributedImage& image) {
  const auto [rows, columns] = patches_of(image).grid;
  return patches.contiguous().view({rows, columns});
}

Attribution gradient_attention(const AttributedImage& image) {
  const Differentiated attention = differentiate(image, 0);
  const Tensor relevance = analysis::gradient_attention(attention.blocks);
  const int64_t tokens = relevance.size(0), prefix = image.differentiable.num_prefix_tokens();
  const Tensor readers = readers_of(image.differentiable, tokens, attention.pool).view({1, tokens});
  const Tensor row = ops::matmul(readers, relevance).select(0, 0);
  return {.map = on_grid(row.narrow(0, prefix, tokens - prefix), image)};
}

Attribution grad_cam(const AttributedImage& image) {
  const models::VisionTransformer& model = image.differentiable;
  const DifferentiatedAttention last = differentiate(image, model.config().depth - 1).blocks.back();
  const Tensor readers = readers_of(model, last.weights.size(1), std::nullopt);
  return {.map = on_grid(analysis::attention_grad_cam(last, readers, model.num_prefix_tokens()), image)};
}

Attribution gradient_input(const AttributedImage& image) {
  const Tensor attribution = analysis::gradient_times_input(image.input, gradient_of(image));
  return {.map = analysis::sum_over_patches(attribution, patches_of(image))};
}

Attribution smooth_grad(const AttributedImage& image) {
  const Tensor gradient = analysis::smooth_grad(image.input, gradient_of(image));
  for (int64_t i = 0; i < gradient.numel(); ++i) gradient.data<float>()[i] = std::fabs(gradient.data<float>()[i]);
  return {.map = analysis::sum_over_patches(gradient, patches_of(image))};
}

Attribution integrated_gradients(const AttributedImage& image) {
  const Tensor baseline = baseline_of(image);
  const Tensor attribution = analysis::integrated_gradients(image.input, baseline, gradient_of(image));
  Attribution result{.map = analysis::sum_over_patches(attribution, patches_of(image))};
  double sum = 0;
  for (int64_t i = 0; i < attribution.numel(); ++i) sum += static_cast<double>(attribution.data<float>()[i]);
  const analysis::ScoresOf scores = scores_of(image);
  result.completeness = {sum, static_cast<double>(scores(image.input)[0]) - static_cast<double>(scores(baseline)[0])};
  return result;
}

Attribution leave_one_out(const AttributedImage& image) {
  return {.map = analysis::leave_one_patch_out(image.input, baseline_of(image), patches_of(image), scores_of(image))};
}

int64_t target_of(const Model& model, const AttributionOptions& options, const Tensor& logits) {
  if (!options.target.empty())
    return class_index("class", options.target, model.class_names(), model.config().vit.num_classes);
  const float* const values = logits.data<float>();
  return std::max_element(values, values + logits.numel()) - values;
}

}  // namespace

const std::vector<AttributionMethod>& attribution_methods() {
  static const std::vector<AttributionMethod> rows{
      {"gradient_attention", "gradient x attention of all blocks (Chefer et al. 2021)", gradient_attention},
      {"grad_cam", "Grad-CAM on the attention of the last block", grad_cam},
      {"gradient_input", "gradient x input", gradient_input},
      {"smooth_grad", "SmoothGrad: the mean gradient of 25 noisy images", smooth_grad},
      {"integrated_gradients", "integrated gradients from the baseline, in 50 steps", integrated_gradients, true},
      {"leave_one_out", "the change of the logit when a patch becomes the baseline", leave_one_out, true},
  };
  return rows;
}

const AttributionMethod* find_attribution(const std::string& name) {
  const auto& rows = attribution_methods();
  const auto found = std::ranges::find(rows, name, &AttributionMethod::name);
  return found == rows.end() ? nullptr : &*found;
}

void describe_attribution(Fields& fields, AttributionOptions& options) {
  fields.text({"class", "Class, by name or index, whose logit a method attributes (default: the prediction)"},
              options.target);
  fields.choice({"baseline", "Image without content, of integrated_gradients and leave_one_out"}, options.baseline,
                {"mean", "black", "blurred"});
}

void check_attribution(const Model& model, const AttributionOptions& options) {
  models::require_classifier(model.config(), "method");
  if (!options.target.empty()) target_of(model, options, {});
}

Attribution attribute(const AttributionMethod& method, const Model& model,
                      const models::VisionTransformer& differentiable, const Tensor& input,
                      const AttributionOptions& options, const ProgressCallback& progress) {
  check_attribution(model, options);
  const Tensor logits = model.session().logits(input).select(0, 0);
  const int64_t target = target_of(model, options, logits);
  Attribution result = method.attribute({model, differentiable, input, target, options.baseline, progress});
  result.target = target;
  result.logits = logits;
  return result;
}

}  // namespace vitrail::pipeline
