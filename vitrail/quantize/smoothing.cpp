// SPDX-License-Identifier: Apache-2.0
#include "vitrail/quantize/smoothing.h"

#include <map>
#include <string>
#include <utility>

#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/nn/trace.h"
#include "vitrail/quantize/block_layers_internal.h"
#include "vitrail/quantize/rotation_internal.h"
#include "vitrail/quantize/smoothing_factors_internal.h"
#include "vitrail/quantize/smoothing_internal.h"

namespace vitrail::quantize {
namespace {

// Samples tokens at traced points.  Tokens that the head reads are left out: the weight correction makes their weights
// exact, and the class token has two-term activations.
class InputSampler {
 public:
  void add_point(const std::string& point, std::optional<int64_t> num_head_tokens) {
    points_[point].num_head_tokens = num_head_tokens;
  }

  // Takes tokens of x [B, N, C] if `point` was added.
  void observe(const std::string& point, const Tensor& x) {
    const auto found = points_.find(point);
    if (found == points_.end()) return;
    auto& [sample, num_head_tokens] = found->second;
    const Tensor activations = x.to(DType::f32).contiguous();
    const Tensor centered = centered_tokens(activations, num_head_tokens);
    const int64_t tokens = activations.size(1), width = activations.size(2);
    for (int64_t image = 0; image < activations.size(0); ++image) {
      for (int64_t token = num_head_tokens.value_or(0); token < tokens; token += kTokenStride) {
        const int64_t at = (image * tokens + token) * width;
        append(activations.data<float>() + at, width, sample.activations);
        append(centered.data<float>() + at, width, sample.centered);
      }
    }
  }

  const InputSample& at(const std::string& point) const { return points_.at(point).sample; }

 private:
  static void append(const float* row, int64_t width, std::vector<float>& rows) {
    rows.insert(rows.end(), row, row + width);
  }

  // Every 8th token is enough: 25 of the 196 patches of a 224 × 224 image, 6,400 rows from 256 images.
  static constexpr int64_t kTokenStride = 8;

  struct Point {
    InputSample sample;
    std::optional<int64_t> num_head_tokens;
  };
  std::map<std::string, Point> points_;
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

std::vector<SmoothedLayer> smoothed_layers(const VitBlocks& blocks) {
  const models::VisionTransformerConfig& config = blocks.config;
  std::vector<SmoothedLayer> result;
  for (int64_t block = 0; block < config.depth; ++block) {
    const std::string path = blocks.block(block);
    const auto add_after_norm = [&](const char* layer, const char* norm) {
      result.push_back({path + layer, {blocks.module.parameter(path + norm + ".weight")}});
      if (config.norm_layer == nn::NormLayer::rms_norm) return;  // has no bias
      result.back().producers.push_back(blocks.module.parameter(path + norm + ".bias"));
    };
    if (config.scale_attn_inner) {
      add_after_norm(".attn.proj", ".attn.norm");
    } else {
      const ValueProjection values = value_projection(blocks, path + ".attn");
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
std::map<std::string, std::string> all_traced_inputs(const VitBlocks& blocks) {
  std::map<std::string, std::string> points;
  for (int64_t block = 0; block < blocks.config.depth; ++block) points.merge(traced_inputs(blocks, block));
  return points;
}

}  // namespace

void smooth_blocks(const std::vector<VitBlocks>& stacks, const std::function<void()>& run) {
  InputSampler sampler;
  std::vector<SmoothedLayer> layers;
  std::vector<Tensor> weights;
  std::vector<std::string> inputs;
  for (const VitBlocks& blocks : stacks) {
    rotate_values(blocks);
    const std::map<std::string, std::string> points = all_traced_inputs(blocks);
    for (SmoothedLayer& item : smoothed_layers(blocks)) {
      inputs.push_back(points.at(item.layer));
      sampler.add_point(inputs.back(), blocks.num_head_tokens);
      weights.push_back(blocks.weight(item.layer));
      layers.push_back(std::move(item));
    }
  }
  {
    const nn::TraceScope scope([&](const std::string& point, const Tensor& x) { sampler.observe(point, x); });
    run();
  }

  // All factors are computed before any weight changes: qkv is smoothed itself, and produces the input of proj.
  std::vector<std::vector<float>> factors(layers.size());
  parallel_for_balanced(0, static_cast<int64_t>(layers.size()), 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) factors[i] = smoothing_factors(sampler.at(inputs[i]), weights[i]);
  });
  for (size_t i = 0; i < layers.size(); ++i) {
    for (const Tensor& producer : layers[i].producers) divide_rows(producer, factors[i]);
    multiply_columns(weights[i], factors[i]);
  }
}

void smooth_activations(models::VisionTransformer& model, const std::vector<Tensor>& images) {
  model.requires_grad(true);  // copies parameters that are a mapped file's, so that they may be written to
  model.requires_grad(false);
  smooth_blocks({model}, [&] {
    for (const Tensor& batch : images) model.forward_features(batch);
  });
}

}  // namespace vitrail::quantize
