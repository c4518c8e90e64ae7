#include "apps/vitrail/convert_int8.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

#include "apps/vitrail/output.h"
#include "vitrail/base/error.h"
#include "vitrail/data/inputs.h"
#include "vitrail/image/decode.h"
#include "vitrail/infer/int8_balance.h"
#include "vitrail/infer/int8_calibration.h"
#include "vitrail/infer/int8_rounding.h"
#include "vitrail/infer/preprocess.h"
#include "vitrail/ops/tokens.h"
#include "vitrail/weights/int8_tensors.h"

namespace vitrail::app {
namespace {

// A few batches of the pictures, evenly spread over what is given.
std::vector<Tensor> calibration_images(const Int8Options& options, const models::ModelConfig& config,
                                       const std::string& where) {
  constexpr size_t kMost = 64, kBatch = 8;
  const std::vector<data::Input> inputs = data::expand_inputs(options.calibrate, std::cin);
  const image::EvalTransform transform = infer::transform_of(config.preprocessing, where);
  const image::DecodeOptions decode{.mode = infer::color_mode_of(config.vit.in_chans)};
  const size_t count = std::min(kMost, inputs.size());
  std::vector<Tensor> batches;
  for (size_t i = 0; i < count; ++i) {
    const data::Input& input = inputs[i * inputs.size() / count];
    if (!input.problem.empty()) throw Error(with_path(input.path, input.problem));
    const Tensor picture = image::apply(image::read_image(input.path, decode), transform).unsqueeze(0);
    if (i % kBatch == 0) {
      batches.push_back(picture);
    } else {
      batches.back() = ops::cat({batches.back(), picture}, 0);
    }
  }
  if (batches.empty()) throw CLI::ValidationError("--calibrate", "no images there");
  return batches;
}

}  // namespace

models::Int8Choice int8_choice(models::VisionTransformer& model, const Int8Options& options,
                               const models::ModelConfig& config, const std::string& where) {
  if (options.calibrate.empty()) return {};
  const std::vector<Tensor> images = calibration_images(options, config, where);
  // What rounding has fitted itself to would flatter it: every fourth batch is for the measurement alone.
  std::vector<Tensor> fitted, measured;
  for (size_t i = 0; i < images.size(); ++i) (i % 4 == 3 ? measured : fitted).push_back(images[i]);
  if (measured.empty()) measured = fitted;
  infer::balance_channels(model, fitted);
  const std::map<std::string, Tensor> exact = infer::round_weights(model, fitted);
  models::Int8Choice choice{infer::layers_to_keep(infer::int8_sensitivity(model, measured, exact), options.tolerance)};
  for (const std::string& layer : choice.kept) model.parameter(layer + ".weight").copy_(exact.at(layer));
  return choice;
}

NamedTensors int8_tensors(const models::VisionTransformer& model, const models::Int8Choice& choice) {
  NamedTensors tensors;
  for (const nn::NamedTensor& parameter : model.named_parameters()) {
    const auto& [name, tensor] = parameter;
    const std::string layer = name.substr(0, name.rfind('.'));
    const bool kept = std::find(choice.kept.begin(), choice.kept.end(), layer) != choice.kept.end();
    if (kept || tensor.rank() != 2 || !name.starts_with("blocks.")) {
      tensors.emplace_back(name, kept && tensor.rank() == 2 ? tensor.to(DType::bf16) : tensor);
      continue;
    }
    const weights::Int8Weight weight = infer::to_int8(tensor);
    tensors.emplace_back(name, weight.numbers);
    tensors.emplace_back(weights::int8_scale_name(name), weight.scales);
  }
  return tensors;
}

void print_kept(const models::Int8Choice& choice, int64_t layers) {
  fmt::print(stderr, "in bf16 stay {} of the blocks' {} linear layers", choice.kept.size(), layers);
  for (size_t i = 0; i < choice.kept.size(); ++i) fmt::print(stderr, "{} {}", i == 0 ? ":" : ",", choice.kept[i]);
  fmt::print(stderr, "\n");
}

}  // namespace vitrail::app
