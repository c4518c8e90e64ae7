// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/convert/convert_onnx.h"

#include <fmt/core.h>

#include <filesystem>
#include <set>

#include "apps/vitrail/convert/calibration_images.h"
#include "apps/vitrail/output/output.h"
#include "apps/vitrail/shell/field_options.h"
#include "vitrail/base/error.h"
#include "vitrail/models/text_tower.h"
#include "vitrail/quantize/activation_scales.h"
#include "vitrail/quantize/smoothing.h"

namespace vitrail::app {

void OnnxFileOptions::add_to(CLI::App& command) {
  const auto describe = [this](Fields& f) {
    f.integer({"opset", "For an ONNX file: version of its operators"}, values.opset, onnx::OnnxOptions::kMinOpset,
              onnx::OnnxOptions::kMaxOpset);
    f.choice<onnx::Input>({"input",
                           "For an ONNX file: float for preprocessed images [N, C, H, W], or uint8 for pixels "
                           "[N, H, W, C], which the graph normalises"},
                          values.input, {{"float", onnx::Input::float32}, {"uint8", onnx::Input::uint8}});
    f.boolean({"dynamic_batch", "For an ONNX file: N is any number; otherwise 1"}, values.dynamic_batch);
    f.choice({"activations",
              "For an ONNX file with --dtype int8 and --calibrate IMAGES: type of the linear layers' inputs, fp32, "
              "int8 (symmetric, also for TensorRT) or uint8 (with a zero point)"},
             activations, {"fp32", "int8", "uint8"});
    f.boolean({"single_mask",
               "For an ONNX file of a Segment Anything decoder: one mask for a prompt, the best; otherwise four"},
              single_mask);
  };
  add_field_options(command, describe, {}, [this](const CLI::Option& option) { options.push_back(&option); });
}

bool is_onnx_file(const std::string& output) { return std::filesystem::path(output).extension() == ".onnx"; }

void check_output_kind(const OnnxFileOptions& onnx, const std::string& output, const std::string& dtype) {
  if (is_onnx_file(output)) {
    if (dtype != "fp32" && dtype != "int8")
      throw CLI::ValidationError("--dtype", "an ONNX file is fp32 or int8; other types are for a folder");
    return;
  }
  const std::string extension = std::filesystem::path(output).extension().string();
  const std::set<std::string> of_files{".ONNX", ".safetensors", ".pth", ".pt", ".bin", ".npz"};
  if (output == "-" || of_files.contains(extension))
    throw CLI::ValidationError("-o", "expected a folder, or a file that ends in .onnx, got " + output);
  for (const CLI::Option* option : onnx.options) {
    if (!option->empty())
      throw CLI::ValidationError(option->get_name(), "requires an output that ends in .onnx, as in -o model.onnx");
  }
}

QuantizedModel quantized_model(const models::OpenedModel& opened, const std::string& activations,
                               const std::vector<std::string>& calibration, const std::string& where) {
  if (models::has_text_tower(opened)) {
    throw Error(where, "an image model, for quantised activations",
                "a dual model (first run vitrail convert MODEL -o FOLDER --dtype int8, which gives its image tower)");
  }
  const DType dtype = activations == "int8" ? DType::i8 : DType::u8;
  const std::vector<Tensor> images = calibration_images(calibration, opened.config, where).calibration;
  models::VisionTransformer model = models::build_model(opened, weights::Int8Weights::dequantize);
  if (!opened.config.int8) {
    quantize::smooth_activations(model, images);
    auto scales = quantize::activation_scales(model, images, dtype);
    return {std::move(model), std::move(scales)};
  }
  return {models::build_model(opened, weights::Int8Weights::keep),
          quantize::activation_scales(model, images, dtype, opened.config.int8->excluded)};
}

}  // namespace vitrail::app
