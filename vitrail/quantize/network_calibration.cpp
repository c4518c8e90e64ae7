// SPDX-License-Identifier: Apache-2.0
#include "vitrail/quantize/network_calibration.h"

#include <algorithm>

#include "vitrail/models/dense/outer_layers.h"
#include "vitrail/quantize/rounding.h"
#include "vitrail/quantize/rounding_internal.h"
#include "vitrail/quantize/sensitivity.h"
#include "vitrail/quantize/sensitivity_internal.h"
#include "vitrail/quantize/smoothing_internal.h"

namespace vitrail::quantize {
namespace {

using Weights = std::map<std::string, Tensor>;  // by layer

// An output [B, Q, …] with each column of its queries in ascending order.
Tensor sorted_queries(const Tensor& output) {
  const int64_t batch = output.size(0), queries = output.size(1), columns = output.numel() / (batch * queries);
  const Tensor sorted = output.to(DType::f32).contiguous().clone();
  std::vector<float> column(static_cast<size_t>(queries));
  for (int64_t i = 0; i < batch * columns; ++i) {
    float* const first = sorted.data<float>() + i / columns * queries * columns + i % columns;
    for (int64_t query = 0; query < queries; ++query) column[static_cast<size_t>(query)] = first[query * columns];
    std::ranges::sort(column);
    for (int64_t query = 0; query < queries; ++query) first[query * columns] = column[static_cast<size_t>(query)];
  }
  return sorted;
}

// A network as its outputs are compared.
struct ComparedNetwork {
  nn::Module& module;
  const infer::Function& forward;
  bool unordered_queries;
};

// The outputs of all inputs, when one layer is int8; none: no layer.
std::vector<Tensor> outputs_with(const ComparedNetwork& network, const std::vector<infer::NamedTensors>& inputs,
                                 const std::vector<std::string>& int8_layers) {
  const infer::FunctionSession session(network.module, network.forward,
                                       {.int8_layers = int8_layers, .retain_all = true});
  std::vector<Tensor> outputs;
  for (const infer::NamedTensors& input : inputs) {
    for (const nn::NamedTensor& output : session.run(input))
      outputs.push_back(network.unordered_queries ? sorted_queries(output.tensor) : output.tensor);
  }
  return outputs;
}

// The network has the original weights.
std::vector<Int8Sensitivity> sensitivity_of(const ComparedNetwork& network,
                                            const std::vector<infer::NamedTensors>& images, const Weights& rounded) {
  const std::vector<Tensor> exact = outputs_with(network, images, {});
  std::vector<Int8Sensitivity> result;
  for (const auto& [layer, weight] : rounded) {
    const Tensor parameter = network.module.parameter(layer + ".weight"), original = parameter.clone();
    parameter.copy_(weight);
    const double error = relative_l2_error(outputs_with(network, images, {layer}), exact);
    parameter.copy_(original);
    result.push_back({layer, error, static_cast<double>(weight.numel())});
  }
  return result;
}

}  // namespace

std::vector<std::string> int8_layers(const nn::Module& network) {
  constexpr std::string_view kSuffix = ".weight";
  std::vector<std::string> layers;
  for (const auto& [name, weight] : network.named_parameters()) {
    if (models::is_of_block(name) && name.ends_with(kSuffix) && weight.rank() == 2)
      layers.push_back(name.substr(0, name.size() - kSuffix.size()));
  }
  return layers;
}

Int8Network calibrate_network(nn::Module& network, const infer::Function& forward, const CalibrationInputs& inputs,
                              double tolerance, bool unordered_queries) {
  network.requires_grad(true);  // copies parameters that are a mapped file's, so that they may be written to
  network.requires_grad(false);
  const auto run = [&] {
    for (const infer::NamedTensors& image : inputs.calibration) forward(image);
  };
  const std::vector<VitBlocks> stacks = vit_blocks(network);
  smooth_blocks(stacks, run);
  Weights originals;
  for (const VitBlocks& blocks : stacks)
    originals.merge(round_blocks(blocks, run, [](const auto& /*layers*/) { return Weights(); }));
  Weights rounded;
  for (const std::string& layer : int8_layers(network)) {
    const Tensor weight = network.parameter(layer + ".weight");
    rounded.emplace(layer, weight.clone());
    if (const auto original = originals.find(layer); original != originals.end()) weight.copy_(original->second);
  }
  Int8Network result;
  const ComparedNetwork compared{network, forward, unordered_queries};
  result.excluded = layers_to_exclude(sensitivity_of(compared, inputs.validation, rounded), tolerance);
  for (const auto& [layer, weight] : rounded) {
    if (std::ranges::find(result.excluded, layer) == result.excluded.end())
      result.weights.emplace(layer, to_int8(weight));
  }
  return result;
}

}  // namespace vitrail::quantize
