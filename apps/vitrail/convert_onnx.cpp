// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/convert_onnx.h"

#include <filesystem>

namespace vitrail::app {

void OnnxFileOptions::add_to(CLI::App& command) {
  const onnx::OnnxOptions defaults;
  command.add_option("--opset", opset, "For an ONNX file: version of its operators")
      ->default_str(std::to_string(defaults.opset))
      ->check(CLI::Range(onnx::OnnxOptions::kMinOpset, onnx::OnnxOptions::kMaxOpset));
  command
      .add_option("--input", input,
                  "For an ONNX file: float for preprocessed images [N, C, H, W], or uint8 for pixels [N, H, W, C], "
                  "which the graph normalises")
      ->default_str("float")
      ->check(CLI::IsMember({"float", "uint8"}));
  command.add_flag("--dynamic-batch", dynamic_batch, "For an ONNX file: N is any number; otherwise 1");
}

onnx::OnnxOptions OnnxFileOptions::values() const {
  onnx::OnnxOptions options;
  if (opset) options.opset = *opset;
  if (input == "uint8") options.input = onnx::Input::uint8;
  options.dynamic_batch = dynamic_batch;
  return options;
}

bool is_onnx_file(const std::string& output) { return std::filesystem::path(output).extension() == ".onnx"; }

void check_output_kind(const OnnxFileOptions& options, const std::string& output, const std::string& dtype) {
  if (is_onnx_file(output)) {
    if (dtype != "fp32") throw CLI::ValidationError("--dtype", "an ONNX file is fp32; other types are for a folder");
    return;
  }
  const char* given = options.opset ? "--opset" : options.input ? "--input" : "--dynamic-batch";
  if (options.opset || options.input || options.dynamic_batch)
    throw CLI::ValidationError(given, "requires an output that ends in .onnx, as in -o model.onnx");
}

}  // namespace vitrail::app
