// SPDX-License-Identifier: Apache-2.0
#pragma once
// The options of `convert` for an ONNX file.
#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "vitrail/onnx/export.h"

namespace vitrail::app {

struct OnnxFileOptions {
  std::optional<int> opset = {};
  std::optional<std::string> input = {};
  bool dynamic_batch = false;

  void add_to(CLI::App& command);
  onnx::OnnxOptions values() const;
};

bool is_onnx_file(const std::string& output);  // by its extension

// Throws CLI::ValidationError for options of the other kind of output.
void check_output_kind(const OnnxFileOptions& options, const std::string& output, const std::string& dtype);

}  // namespace vitrail::app
