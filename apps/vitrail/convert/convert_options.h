// SPDX-License-Identifier: Apache-2.0
#pragma once
// The options of `vitrail convert`.
#include <string>

#include "apps/vitrail/convert/convert_int8.h"
#include "apps/vitrail/convert/convert_onnx.h"

namespace vitrail::app {

struct NamedModel;

struct ConvertCommandOptions {
  ModelOptions model;
  std::string output, dtype = "fp32";
  Int8Options int8;
  OnnxFileOptions onnx;
  bool force = false;
};

int convert_image_model(const NamedModel& model, const ConvertCommandOptions& options, const GlobalOptions& global);

}  // namespace vitrail::app
