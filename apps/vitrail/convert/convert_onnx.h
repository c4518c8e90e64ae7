// SPDX-License-Identifier: Apache-2.0
#pragma once
// The options of `convert` for an ONNX file.
#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "apps/vitrail/shell/common.h"
#include "vitrail/onnx/export.h"

namespace vitrail::app {

struct OnnxFileOptions {
  std::optional<int> opset = {};
  std::optional<std::string> input = {}, activations = {};
  bool dynamic_batch = false, single_mask = false;

  void add_to(CLI::App& command);
  onnx::OnnxOptions values() const;
  bool quantizes_activations() const { return activations.value_or("fp32") != "fp32"; }
};

bool is_onnx_file(const std::string& output);  // by its extension

// Throws CLI::ValidationError for options of the other kind of output.
void check_output_kind(const OnnxFileOptions& options, const std::string& output, const std::string& dtype);

// A model whose activations are quantised in the ONNX file.
struct QuantizedModel {
  models::VisionTransformer model;
  std::map<std::string, AffineQuantization> activations;
};

// Smooths a floating model, and chooses scales for the activations of `opened`'s layers that are not excluded from
// int8. calibration: images and folders.  `where` names the model in errors.  Throws Error for a model with a text
// tower.
QuantizedModel quantized_model(const models::OpenedModel& opened, const std::string& activations,
                               const std::vector<std::string>& calibration, const std::string& where);

}  // namespace vitrail::app
