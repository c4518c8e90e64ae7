// SPDX-License-Identifier: Apache-2.0
#include "vitrail/quantize/sensitivity.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "vitrail/base/error.h"
#include "vitrail/infer/session.h"
#include "vitrail/kernels/gemm/linear.h"
#include "vitrail/nn/copied_params.h"
#include "vitrail/quantize/rounding.h"
#include "vitrail/quantize/sensitivity_internal.h"

namespace vitrail::quantize {
namespace {

// A layer is always excluded if its share of the total cost is at most this: int8 saves nothing there.  Such are the
// layers of the last block that are computed for the class token only.
constexpr double kNegligibleCost = 1e-3;

constexpr const char* kLinearLayers[] = {"attn.qkv", "attn.proj", "mlp.fc1", "mlp.fc2"};

// Weights by layer: "blocks.0.attn.qkv".
using Weights = std::map<std::string, Tensor>;

std::vector<Tensor> logits_of(const models::VisionTransformer& model, const Weights& replaced,
                              const std::vector<Tensor>& images, const infer::SessionOptions& options) {
  std::map<std::string, Tensor> parameters;
  for (const auto& [layer, weight] : replaced) parameters[layer + ".weight"] = weight;
  nn::CopiedParams copies(model, parameters);  // copies, because a session releases the weights that it packs
  const infer::Session session(models::VisionTransformer(model.config(), ParamSource(copies)), options);
  std::vector<Tensor> results;
  for (const Tensor& batch : images) results.push_back(session.logits(batch));
  return results;
}

// Dead-token elimination: in the last block only qkv is computed for tokens that no head reads.
double multiply_adds(const models::VisionTransformer& model, const std::string& layer, int64_t tokens) {
  const int64_t head_tokens = model.num_head_tokens();
  const std::string last_block = str("blocks.", model.config().depth - 1, ".");
  const bool head_tokens_only = head_tokens > 0 && layer.starts_with(last_block) && layer != last_block + "attn.qkv";
  return static_cast<double>(model.parameter(layer + ".weight").numel() * (head_tokens_only ? head_tokens : tokens));
}

std::vector<std::string> linear_layers(const models::VisionTransformer& model) {
  std::vector<std::string> layers;
  for (int64_t block = 0; block < model.config().depth; ++block) {
    for (const char* layer : kLinearLayers) layers.push_back(str("blocks.", block, ".", layer));
  }
  return layers;
}

}  // namespace

double relative_l2_error(const std::vector<Tensor>& got, const std::vector<Tensor>& want) {
  double difference_squares = 0, want_squares = 0;
  for (size_t b = 0; b < want.size(); ++b) {
    for (int64_t i = 0; i < want[b].numel(); ++i) {
      const double g = got[b].data<float>()[i], w = want[b].data<float>()[i];
      difference_squares += (g - w) * (g - w);
      want_squares += w * w;
    }
  }
  return want_squares > 0 ? std::sqrt(difference_squares / want_squares) : std::sqrt(difference_squares);
}

std::vector<Int8Sensitivity> int8_sensitivity(const models::VisionTransformer& model, const std::vector<Tensor>& images,
                                              const std::map<std::string, Tensor>& originals) {
  const std::vector<Tensor> exact = logits_of(model, originals, images, {});
  const std::vector<std::string> layers = linear_layers(model);
  const int64_t tokens = model.forward_features(images.at(0).narrow(0, 0, 1)).size(1);
  std::vector<Int8Sensitivity> result;
  for (const std::string& layer : layers) {
    infer::SessionOptions options{.precision = kernels::Precision::int8,
                                  .excluded_precision = kernels::Precision::fp32};
    std::copy_if(layers.begin(), layers.end(), std::back_inserter(options.excluded_layers),
                 [&layer](const std::string& other) { return other != layer; });
    Weights weights = originals;
    weights.erase(layer);
    if (const auto original = originals.find(layer); original != originals.end()) {
      const Tensor rounded = model.parameter(layer + ".weight");
      weights[layer] = Tensor::from_quantized(with_correction(original->second, rounded));
    }
    const double error = relative_l2_error(logits_of(model, weights, images, options), exact);
    result.push_back({layer, error, multiply_adds(model, layer, tokens)});
  }
  std::stable_sort(result.begin(), result.end(), [](const auto& a, const auto& b) { return a.error > b.error; });
  return result;
}

std::vector<std::string> layers_to_exclude(const std::vector<Int8Sensitivity>& sensitivity, double tolerance) {
  double sum_squares = 0, total_cost = 0;
  for (const Int8Sensitivity& item : sensitivity) {
    sum_squares += item.error * item.error;
    total_cost += item.cost;
  }
  std::vector<Int8Sensitivity> order = sensitivity;
  const auto error_per_cost = [](const Int8Sensitivity& item) { return item.error * item.error / item.cost; };
  std::stable_sort(order.begin(), order.end(),
                   [&](const auto& a, const auto& b) { return error_per_cost(a) > error_per_cost(b); });
  std::vector<std::string> excluded;
  for (const Int8Sensitivity& item : order) {
    if (sum_squares <= tolerance * tolerance && item.cost > kNegligibleCost * total_cost) continue;
    sum_squares -= item.error * item.error;
    excluded.push_back(item.layer);
  }
  return excluded;
}

}  // namespace vitrail::quantize
