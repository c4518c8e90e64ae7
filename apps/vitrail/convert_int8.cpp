// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/convert_int8.h"
#include "apps/vitrail/image_inputs.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "apps/vitrail/output.h"
#include "vitrail/base/error.h"
#include "vitrail/base/random.h"
#include "vitrail/data/random_area_crop.h"
#include "vitrail/image/decode.h"
#include "vitrail/infer/preprocess.h"
#include "vitrail/ops/tokens.h"
#include "vitrail/quantize/rounding.h"
#include "vitrail/quantize/sensitivity.h"
#include "vitrail/quantize/smoothing.h"
#include "vitrail/weights/int8_tensors.h"

namespace vitrail::app {
namespace {

// Preprocessed images in batches of 8.
class Batches {
 public:
  explicit Batches(const image::EvalTransform& transform) : transform_(transform) {}
  void add(const image::Image& source) {
    constexpr int64_t kBatch = 8;
    const Tensor input = image::apply(source, transform_).unsqueeze(0);
    if (batches_.empty() || batches_.back().size(0) == kBatch) {
      batches_.push_back(input);
    } else {
      batches_.back() = ops::cat({batches_.back(), input}, 0);
    }
  }
  const std::vector<Tensor>& all() const { return batches_; }

 private:
  const image::EvalTransform& transform_;
  std::vector<Tensor> batches_;
};

// Two sets of batches.  Rounding fits the weights to the calibration set: each image and three random crops of it.  The
// sensitivity is measured on other crops, because an error on the calibration set would be too optimistic.
struct CalibrationImages {
  std::vector<Tensor> calibration, validation;
};

CalibrationImages calibration_images(const Int8Options& options, const models::ModelConfig& config,
                                     const std::string& where) {
  constexpr size_t kMaxImages = 64;
  constexpr int kCropsPerImage = 3;
  constexpr size_t kValidationStride = 4;  // every fourth image also gives a validation crop
  ImageInputs inputs(options.calibration_inputs);
  size_t available = 0;
  while (inputs.at(available)) ++available;
  const image::EvalTransform transform = infer::transform_of(config.preprocessing, where);
  const image::DecodeOptions decode{.mode = infer::color_mode_of(config.vit.in_chans)};
  const size_t count = std::min(kMaxImages, available);
  Batches calibration(transform), validation(transform);
  RandomStream random(random_key("calibration_images"));
  for (size_t i = 0; i < count; ++i) {
    const image::Image source = inputs.read(i * available / count, decode);  // evenly spaced over the inputs
    calibration.add(source);
    for (int crop = 0; crop < kCropsPerImage; ++crop) calibration.add(data::random_area_crop(source, random));
    if (i % kValidationStride == 0) validation.add(data::random_area_crop(source, random));
  }
  if (count == 0) throw CLI::ValidationError("--calibrate", "no images found");
  return {calibration.all(), validation.all()};
}

bool contains(const std::vector<std::string>& layers, const std::string& layer) {
  return std::find(layers.begin(), layers.end(), layer) != layers.end();
}

}  // namespace

Int8Conversion int8_conversion(models::VisionTransformer& model, const Int8Options& options,
                               const models::ModelConfig& config, const std::string& where) {
  if (options.calibration_inputs.empty()) return {};
  const CalibrationImages images = calibration_images(options, config, where);
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

NamedTensors int8_tensors(const models::VisionTransformer& model, const Int8Conversion& conversion) {
  NamedTensors tensors;
  const auto add = [&tensors](const std::string& name, const QuantizedTensor& weight) {
    tensors.emplace_back(name, weight.values);
    tensors.emplace_back(weights::int8_scale_name(name), weight.scales);
  };
  for (const nn::NamedTensor& parameter : model.named_parameters()) {
    const auto& [name, tensor] = parameter;
    const std::string layer = name.substr(0, name.rfind('.'));
    const bool excluded = contains(conversion.config.excluded, layer);
    const bool is_matrix = tensor.rank() == 2;
    if (excluded || !is_matrix || !name.starts_with("blocks.")) {
      tensors.emplace_back(name, excluded && is_matrix ? weights::to_16_bits(tensor) : tensor);
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
