// SPDX-License-Identifier: Apache-2.0
#include "vitrail/quantize/sensitivity.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "vitrail/base/error.h"
#include "vitrail/infer/session.h"
#include "vitrail/kernels/gemm/linear.h"
#include "vitrail/nn/copied_params.h"
#include "vitrail/quantize/layer_inputs.h"
#include "vitrail/quantize/rounding.h"

namespace vitrail::quantize {
namespace {

// Of what all layers cost, a layer that is kept whatever it gains: one that is computed for the class token alone.
constexpr double kForNothing = 1e-3;

constexpr const char* kLayers[] = {"attn.qkv", "attn.proj", "mlp.fc1", "mlp.fc2"};

// Weights by layer: "blocks.0.attn.qkv".
using Weights = std::map<std::string, Tensor>;

std::vector<Tensor> logits_of(const models::VisionTransformer& model, const Weights& replaced,
                              const std::vector<Tensor>& images, const infer::SessionOptions& options) {
  std::map<std::string, Tensor> parameters;
  for (const auto& [layer, weight] : replaced) parameters[layer + ".weight"] = weight;
  nn::CopiedParams copies(model, parameters);  // a session gives back the memory of the weights that it packs
  const infer::Session session(models::VisionTransformer(model.config(), ParamSource(copies)), options);
  std::vector<Tensor> results;
  for (const Tensor& batch : images) results.push_back(session.logits(batch));
  return results;
}

double distance(const std::vector<Tensor>& got, const std::vector<Tensor>& want) {
  double apart = 0, length = 0;
  for (size_t b = 0; b < want.size(); ++b) {
    for (int64_t i = 0; i < want[b].numel(); ++i) {
      const double g = got[b].data<float>()[i], w = want[b].data<float>()[i];
      apart += (g - w) * (g - w);
      length += w * w;
    }
  }
  return length > 0 ? std::sqrt(apart / length) : std::sqrt(apart);
}

// Where the heads read a few tokens only, the last block computes just the keys and values of the others.
double cost_of(const models::VisionTransformer& model, const std::string& layer, int64_t tokens) {
  const int64_t alone = model.num_head_tokens();
  const std::string last = str("blocks.", model.config().depth - 1, ".");
  const bool left_out = alone > 0 && layer.starts_with(last) && layer != last + "attn.qkv";
  return static_cast<double>(model.parameter(layer + ".weight").numel() * (left_out ? alone : tokens));
}

std::vector<std::string> linear_layers(const models::VisionTransformer& model) {
  std::vector<std::string> layers;
  for (int64_t block = 0; block < model.config().depth; ++block) {
    for (const char* layer : kLayers) layers.push_back(str("blocks.", block, ".", layer));
  }
  return layers;
}

}  // namespace

std::vector<Int8Sensitivity> int8_sensitivity(const models::VisionTransformer& model, const std::vector<Tensor>& images,
                                              const std::map<std::string, Tensor>& before_rounding) {
  const std::vector<Tensor> exact = logits_of(model, before_rounding, images, {});
  const std::vector<std::string> layers = linear_layers(model);
  const int64_t tokens = model.forward_features(images.at(0).narrow(0, 0, 1)).size(1);
  std::vector<Int8Sensitivity> result;
  for (const std::string& layer : layers) {
    infer::SessionOptions options{.precision = kernels::Precision::int8,
                                  .excluded_precision = kernels::Precision::fp32};
    std::copy_if(layers.begin(), layers.end(), std::back_inserter(options.excluded_layers),
                 [&layer](const std::string& other) { return other != layer; });
    Weights replaced = before_rounding;
    replaced.erase(layer);
    if (const auto before = before_rounding.find(layer); before != before_rounding.end()) {
      const Tensor rounded = model.parameter(layer + ".weight");
      replaced[layer] = Tensor::from_quantized(with_correction(before->second, rounded));
    }
    const double error = distance(logits_of(model, replaced, images, options), exact);
    result.push_back({layer, error, cost_of(model, layer, tokens)});
  }
  std::stable_sort(result.begin(), result.end(), [](const auto& a, const auto& b) { return a.error > b.error; });
  return result;
}

std::vector<std::string> layers_to_exclude(const std::vector<Int8Sensitivity>& sensitivity, double tolerance) {
  double squares = 0, cost = 0;
  for (const Int8Sensitivity& item : sensitivity) {
    squares += item.error * item.error;
    cost += item.cost;
  }
  std::vector<Int8Sensitivity> order = sensitivity;
  const auto gain = [](const Int8Sensitivity& item) { return item.error * item.error / item.cost; };
  std::stable_sort(order.begin(), order.end(), [&](const auto& a, const auto& b) { return gain(a) > gain(b); });
  std::vector<std::string> kept;
  for (const Int8Sensitivity& item : order) {
    if (squares <= tolerance * tolerance && item.cost > kForNothing * cost) continue;
    squares -= item.error * item.error;
    kept.push_back(item.layer);
  }
  return kept;
}

}  // namespace vitrail::quantize
