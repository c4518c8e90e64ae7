// SPDX-License-Identifier: Apache-2.0
#pragma once
// The options of `convert` for an ONNX file.
#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "apps/vitrail/common.h"
#include "vitrail/onnx/export_sam.h"
#include "vitrail/onnx/export_text.h"

namespace vitrail::app {

struct OnnxFileOptions {
  std::optional<int> opset = {};
  std::optional<std::string> input = {};
  bool dynamic_batch = false, single_mask = false;

  void add_to(CLI::App& command);
  onnx::OnnxOptions values() const;
};

bool is_onnx_file(const std::string& output);  // by its extension

// Throws CLI::ValidationError for options of the other kind of output.
void check_output_kind(const OnnxFileOptions& options, const std::string& output, const std::string& dtype);

// Throws CLI::ValidationError for options of preprocessing and architecture, which Segment Anything does not have.
void check_segmentation_options(const ModelOptions& model);

// Writes the encoder and the decoder of a Segment Anything model.  Throws CLI::ValidationError for options of `model`
// that it does not have.
int convert_sam(const ModelOptions& model, const OnnxFileOptions& options, const std::string& output, bool quiet);

// Writes the text tower beside the image tower.
void convert_text(const models::TextTower& tower, const OnnxFileOptions& options, const std::string& output,
                  bool quiet);

}  // namespace vitrail::app
