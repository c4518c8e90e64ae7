// SPDX-License-Identifier: Apache-2.0
#pragma once
// The options of `convert` for an ONNX file.
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "apps/vitrail/shell/common.h"
#include "vitrail/onnx/export.h"

namespace vitrail::app {

struct OnnxFileOptions {
  onnx::OnnxOptions values = {};
  std::string activations = "fp32";
  bool single_mask = false;
  std::vector<const CLI::Option*> options = {};  // those above

  void add_to(CLI::App& command);
  bool quantizes_activations() const { return activations != "fp32"; }
};

bool is_onnx_file(const std::string& output);  // by its extension

// Throws CLI::ValidationError for options of the other kind of output.
void check_output_kind(const OnnxFileOptions& onnx, const std::string& output, const std::string& dtype);

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
