// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include "apps/vitrail/convert/convert_tensors.h"
#include "apps/vitrail/families/model_options.h"
#include "apps/vitrail/output/output.h"
#include "apps/vitrail/segment/segment_family.h"
#include "apps/vitrail/segment/segment_options.h"
#include "apps/vitrail/shell/usage_errors.h"
#include "vitrail/onnx/export_sam.h"
#include "vitrail/weights/hub_layout.h"

namespace vitrail::app {
namespace {

// The encoder and the decoder.
int write_onnx_files(const models::ModelFiles& files, const ConvertCommandOptions& options,
                     const GlobalOptions& global) {
  if (options.dtype != "fp32") throw CLI::ValidationError("--dtype", "Segment Anything is exported in fp32");
  refuse_model_options(options.model, "Segment Anything");
  const onnx::SamOnnxOptions values{.file = options.onnx.values, .single_mask = options.onnx.single_mask};
  const models::Sam sam = models::load_sam(files);
  onnx::export_sam_onnx(sam, options.output, values);
  const onnx::SamOnnxFiles written = onnx::sam_onnx_files(options.output);
  if (!global.quiet) {
    const std::string decoder = sam.config().has_decoder ? " and " + written.decoder.string() : "";
    print_note(fmt::format("{}{}: opset {}, {} parameters, fp32", written.encoder.string(), decoder, values.file.opset,
                           sam.num_parameters()));
  }
  return 0;
}

int write_folder(const models::ModelFiles& files, const ConvertCommandOptions& options, const GlobalOptions& global) {
  if (options.dtype == "int8")
    throw CLI::ValidationError("--dtype", "Segment Anything is quantised when it is loaded (segment --precision int8)");
  ModelOptions others = options.model;
  others.preset.clear();
  refuse_model_options(others, "Segment Anything");
  const models::Sam sam = models::load_sam(files, {segmentation_preset(options.model.preset)});
  const NamedTensors tensors = tensors_as(parameters_of(sam), dtype_from_name(options.dtype));
  weights::write_hub_folder(options.output, models::write_sam_config(sam.config()), tensors);
  if (!global.quiet) {
    print_note(fmt::format("{}: {} tensors, {} parameters, {}", options.output, tensors.size(), sam.num_parameters(),
                           options.dtype));
  }
  return 0;
}

}  // namespace

int convert_segmentation(const NamedModel& model, const ConvertCommandOptions& options, const GlobalOptions& global) {
  return is_onnx_file(options.output) ? write_onnx_files(*model.files, options, global)
                                      : write_folder(*model.files, options, global);
}

}  // namespace vitrail::app
