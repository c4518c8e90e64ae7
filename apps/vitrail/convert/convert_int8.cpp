// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/convert/convert_int8.h"

#include <fmt/core.h>

#include <algorithm>

#include "apps/vitrail/convert/calibration_images.h"
#include "apps/vitrail/output/output.h"
#include "vitrail/base/error.h"
#include "vitrail/models/dense/outer_layers.h"
#include "vitrail/quantize/network_calibration.h"
#include "vitrail/quantize/rounding.h"
#include "vitrail/quantize/sensitivity.h"
#include "vitrail/quantize/smoothing.h"
#include "vitrail/weights/int8_tensors.h"

namespace vitrail::app {
namespace {

bool contains(const std::vector<std::string>& layers, const std::string& layer) {
  return std::find(layers.begin(), layers.end(), layer) != layers.end();
}

}  // namespace

Int8Conversion int8_conversion(models::VisionTransformer& model, const Int8Options& options,
                               const models::ModelConfig& config, const std::string& where) {
  if (options.calibration_inputs.empty()) return {};
  const CalibrationImages images = calibration_images(options.calibration_inputs, config, where);
  quantize::smooth_activations(model, images.calibration);
  const std::map<std::string, Tensor> original_weights = quantize::gptq_round(model, images.calibration);
  const auto sensitivity = quantize::int8_sensitivity(model, images.validation, original_weights);
  Int8Conversion result;
  result.config.excluded = quantize::layers_to_exclude(sensitivity, options.tolerance);
  for (const auto& [layer, original] : original_weights) {
    const Tensor weight = model.parameter(layer + ".weight");
    if (contains(result.config.excluded, layer)) {
      weight.copy_(original);
    } else {
      result.weights.emplace(layer, quantize::with_correction(original, weight));
    }
  }
  return result;
}

// Maps have many tokens, and their networks take seconds for an image.
Int8Conversion int8_conversion(const tasks::LoadedModel& model, const tasks::Network& network,
                               const Int8Options& options) {
  if (options.calibration_inputs.empty()) return {};
  quantize::CalibrationInputs inputs;
  read_calibration_images(
      options.calibration_inputs, {.mode = model.color_mode()}, {.max_images = 16, .crops = 0, .validation_stride = 8},
      [&](const image::Image& photo) { inputs.calibration.push_back(network.inputs_of(photo)); },
      [&](const image::Image& photo) { inputs.validation.push_back(network.inputs_of(photo)); });
  quantize::Int8Network calibrated = quantize::calibrate_network(*network.calibrated, network.forward, inputs,
                                                                 options.tolerance, network.unordered_queries);
  return {{std::move(calibrated.excluded)}, std::move(calibrated.weights)};
}

NamedTensors int8_tensors(const nn::Module& model, const Int8Conversion& conversion) {
  NamedTensors tensors;
  const auto add = [&tensors](const std::string& name, const QuantizedTensor& weight) {
    tensors.emplace_back(name, weight.values);
    tensors.emplace_back(weights::int8_scale_name(name), weight.scales);
  };
  for (const nn::NamedTensor& parameter : model.named_parameters()) {
    const auto& [name, tensor] = parameter;
    const std::string layer = name.substr(0, name.rfind('.'));
    const bool excluded = contains(conversion.config.excluded, layer);
    const bool is_weight = tensor.rank() == 2 && name.ends_with(".weight");  // tables of positions stay
    if (excluded || !is_weight || !models::is_of_block(name)) {
      tensors.emplace_back(name, excluded && is_weight ? weights::to_16_bits(tensor) : tensor);
      continue;
    }
    const auto calibrated = conversion.weights.find(layer);
    const QuantizedTensor weight =
        calibrated == conversion.weights.end() ? quantize::to_int8(tensor) : calibrated->second;
    add(name, weight);
    if (weight.correction) add(weights::int8_correction_name(name), *weight.correction);
  }
  return tensors;
}

void print_excluded_layers(const models::Int8Config& config, int64_t layers) {
  const auto& excluded = config.excluded;
  print_note(fmt::format("{} of {} linear layers excluded from int8{}{}", excluded.size(), layers,
                         excluded.empty() ? "" : ": ", fmt::join(excluded, ", ")));
}

}  // namespace vitrail::app
