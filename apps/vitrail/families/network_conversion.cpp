// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include "apps/vitrail/convert/convert_dual.h"
#include "apps/vitrail/convert/convert_tensors.h"
#include "apps/vitrail/families/model_options.h"
#include "apps/vitrail/families/network_family.h"
#include "apps/vitrail/output/output.h"
#include "apps/vitrail/shell/usage_errors.h"
#include "vitrail/onnx/export_network.h"
#include "vitrail/weights/hub_layout.h"

namespace vitrail::app {
namespace {

// At the size of --image-size, if the network has others than its own.
int write_network_graph(const tasks::LoadedModel& model, const tasks::Network& network,
                        const ConvertCommandOptions& options, const GlobalOptions& global) {
  ModelOptions others = options.model;
  infer::NamedTensors inputs = network.inputs;
  if (others.image_size && network.any_size) {
    const auto [height, width] = *others.image_size;
    for (auto& [name, tensor] : inputs) {
      const Shape shape = tensor.shape();
      if (name == "images") tensor = Tensor::empty({1, shape[1], height, width}, DType::f32, Device::meta);
    }
    others.image_size.reset();
  }
  refuse_model_options(others, model.family());
  onnx::export_network_onnx(
      {.module = network.module,
       .forward = network.forward,
       .inputs = inputs,
       .pixels = network.pixels,
       .metadata = {{"config.json", network.config_json}, {"preprocessor_config.json", network.preprocessor_json}}},
      options.output, options.onnx.values);
  if (!global.quiet) {
    print_note(fmt::format("{}: opset {}, {} parameters, fp32", options.output, options.onnx.values.opset,
                           network.module.num_parameters()));
  }
  return 0;
}

}  // namespace

// A folder has the tensors and files of the source, which its other readers know too.
int convert_network(const NamedModel& named, const ConvertCommandOptions& options, const GlobalOptions& global) {
  const auto model = tasks::open_model(*named.files);
  const tasks::Network network = network_of(*model, named.name);
  if (options.dtype == "int8") {
    throw CLI::ValidationError("--dtype", model->family() + " is quantised when it is loaded (--precision int8)");
  }
  if (options.onnx.single_mask)
    throw CLI::ValidationError("--single-mask", "is for a Segment Anything model, which this is not");
  if (is_onnx_file(options.output)) return write_network_graph(*model, network, options, global);
  refuse_model_options(options.model, model->family());
  const NamedTensors tensors = tensors_as(tensors_of(*named.files->checkpoint()), dtype_from_name(options.dtype));
  const std::vector<std::string> written{network.preprocessor_json.empty() ? "" : "preprocessor_config.json"};
  weights::check_no_other_processor(options.output, written);
  weights::write_hub_folder(options.output, network.config_json, tensors, network.preprocessor_json);
  copy_tokenizer(named.files->config.parent_path(), options.output);
  if (!global.quiet) {
    print_note(fmt::format("{}: {} tensors, {} parameters, {}, under the names of {}", options.output, tensors.size(),
                           network.module.num_parameters(), options.dtype, named.name));
  }
  return 0;
}

}  // namespace vitrail::app
