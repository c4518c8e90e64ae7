// SPDX-License-Identifier: Apache-2.0
#include "vitrail/quantize/smoothing.h"

#include <map>
#include <string>
#include <utility>

#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/nn/trace.h"
#include "vitrail/quantize/block_layers_internal.h"
#include "vitrail/quantize/rotation.h"
#include "vitrail/quantize/smoothing_factors_internal.h"

namespace vitrail::quantize {
namespace {

// Samples tokens at traced points.  Tokens that the head reads are left out: the weight correction makes their weights
// exact, and the class token has two-term activations.
class InputSampler {
 public:
  explicit InputSampler(int64_t num_head_tokens) : num_head_tokens_(num_head_tokens) {}

  void add_point(const std::string& point) { samples_[point]; }

  // Takes tokens of x [B, N, C] if `point` was added.
  void observe(const std::string& point, const Tensor& x) {
    const auto found = samples_.find(point);
    if (found == samples_.end()) return;
    const Tensor activations = x.to(DType::f32).contiguous();
    const Tensor centered = centered_tokens(activations, num_head_tokens_);
    const int64_t tokens = activations.size(1), width = activations.size(2);
    for (int64_t image = 0; image < activations.size(0); ++image) {
      for (int64_t token = num_head_tokens_; token < tokens; token += kTokenStride) {
        const int64_t at = (image * tokens + token) * width;
        append(activations.data<float>() + at, width, found->second.activations);
        append(centered.data<float>() + at, width, found->second.centered);
      }
    }
  }

  const InputSample& at(const std::string& point) const { return samples_.at(point); }

 private:
  static void append(const float* row, int64_t width, std::vector<float>& rows) {
    rows.insert(rows.end(), row, row + width);
  }

  // Every 8th token is enough: 25 of the 196 patches of a 224 × 224 image, 6,400 rows from 256 images.
  static constexpr int64_t kTokenStride = 8;

  int64_t num_head_tokens_;
  std::map<std::string, InputSample> samples_;
};

// x [n, ...]: row i is divided by factors[i].
void divide_rows(const Tensor& x, const std::vector<float>& factors) {
  const int64_t width = x.numel() / x.size(0);
  for (int64_t i = 0; i < x.numel(); ++i) x.data<float>()[i] /= factors[static_cast<size_t>(i / width)];
}

// weight [out, in]: column c is multiplied by factors[c].
void multiply_columns(const Tensor& weight, const std::vector<float>& factors) {
  const int64_t in = weight.size(1);
  for (int64_t i = 0; i < weight.numel(); ++i) weight.data<float>()[i] *= factors[static_cast<size_t>(i % in)];
}

// A linear layer, and the parameters [in] or [in, ...] whose rows scale the channels of its input.
struct SmoothedLayer {
  std::string layer;
  std::vector<Tensor> producers;
};

std::vector<SmoothedLayer> smoothed_layers(const models::VisionTransformer& model) {
  const models::VisionTransformerConfig& config = model.config();
  std::vector<SmoothedLayer> result;
  for (int64_t block = 0; block < config.depth; ++block) {
    const std::string path = str("blocks.", block);
    const auto add_after_norm = [&](const char* layer, const char* norm) {
      result.push_back({path + layer, {model.parameter(path + norm + ".weight")}});
      if (config.norm_layer == nn::NormLayer::rms_norm) return;  // has no bias
      result.back().producers.push_back(model.parameter(path + norm + ".bias"));
    };
    if (config.scale_attn_inner) {
      add_after_norm(".attn.proj", ".attn.norm");
    } else {
      const ValueProjection values = value_projection(model, path + ".attn");
      result.push_back({path + ".attn.proj", {values.weight}});
      if (values.bias.defined()) result.back().producers.push_back(values.bias);
    }
    // In post-norm blocks the residual reads the LayerNorm's output too, or no LayerNorm makes these inputs.
    if (!config.norm_first || config.use_post_norm) continue;
    add_after_norm(".attn.qkv", ".norm1");
    add_after_norm(".mlp.fc1", ".norm2");
  }
  return result;
}

// The traced points of all blocks' linear layers, by layer.
std::map<std::string, std::string> all_traced_inputs(const models::VisionTransformer& model) {
  std::map<std::string, std::string> points;
  for (int64_t block = 0; block < model.config().depth; ++block) points.merge(traced_inputs(model, block));
  return points;
}

}  // namespace

void smooth_activations(models::VisionTransformer& model, const std::vector<Tensor>& images) {
  model.requires_grad(true);  // copies parameters that are a mapped file's, so that they may be written to
  model.requires_grad(false);
  rotate_values(model);

  const std::map<std::string, std::string> points = all_traced_inputs(model);
  const std::vector<SmoothedLayer> layers = smoothed_layers(model);
  InputSampler sampler(model.num_head_tokens());
  for (const SmoothedLayer& item : layers) sampler.add_point(points.at(item.layer));
  {
    const nn::TraceScope scope([&](const std::string& point, const Tensor& x) { sampler.observe(point, x); });
    for (const Tensor& batch : images) model.forward_features(batch);
  }

  // All factors are computed before any weight changes: qkv is smoothed itself, and produces the input of proj.
  std::vector<std::vector<float>> factors(layers.size());
  parallel_for_balanced(0, static_cast<int64_t>(layers.size()), 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      factors[i] =
          smoothing_factors(sampler.at(points.at(layers[i].layer)), model.parameter(layers[i].layer + ".weight"));
    }
  });
  for (size_t i = 0; i < layers.size(); ++i) {
    for (const Tensor& producer : layers[i].producers) divide_rows(producer, factors[i]);
    multiply_columns(model.parameter(layers[i].layer + ".weight"), factors[i]);
  }
}

}  // namespace vitrail::quantize
