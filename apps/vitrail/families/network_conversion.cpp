// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "apps/vitrail/convert/convert_tensors.h"
#include "apps/vitrail/families/model_options.h"
#include "apps/vitrail/families/network_family.h"
#include "apps/vitrail/output/output.h"
#include "apps/vitrail/shell/usage_errors.h"
#include "vitrail/models/int8_config.h"
#include "vitrail/onnx/export_network.h"
#include "vitrail/pipeline/dual_folder.h"
#include "vitrail/quantize/network_calibration.h"
#include "vitrail/weights/hub_layout.h"
#include "vitrail/weights/native_tensors.h"

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

// The parameters of the Vision Transformers, which calibration changes, have native names in an int8 folder.
class NativeNames {
 public:
  explicit NativeNames(const nn::Module& module) {
    for (const std::string& layer : quantize::int8_layers(module))
      paths_.insert(layer.substr(0, layer.find("blocks.")));
  }
  bool contains(const std::string& name) const {
    return std::ranges::any_of(paths_, [&](const std::string& path) { return name.starts_with(path); });
  }

 private:
  std::set<std::string> paths_;  // "backbone."
};

// In int8, or floating where the source is an int8 file.
NamedTensors native_tensors(const tasks::LoadedModel& model, const tasks::Network& network,
                            const ConvertCommandOptions& options, std::optional<models::Int8Config>& int8) {
  if (options.dtype != "int8") {
    int8.reset();
    return tensors_as(parameters_of(network.module), dtype_from_name(options.dtype));
  }
  const Int8Conversion conversion = int8_conversion(model, network, options.int8);
  int8 = conversion.config;
  return int8_tensors(network.module, conversion);
}

// The source's other tensors, unchanged in an int8 file.
NamedTensors other_tensors(const weights::Checkpoint& checkpoint, const tasks::Network& network,
                           const NativeNames& native, const std::string& dtype) {
  std::vector<std::pair<std::string, Shape>> natives;
  for (const auto& [name, tensor] : network.module.named_parameters()) {
    if (native.contains(name)) natives.emplace_back(name, tensor.shape());
  }
  const std::vector<std::string> names = weights::tensors_beside(checkpoint, network.key_map, natives);
  NamedTensors tensors = tensors_of(checkpoint);
  std::erase_if(tensors, [&](const auto& item) {
    const bool unused = native.contains(item.first) && network.key_map.match(item.first).dropped();
    return unused || std::ranges::find(names, item.first) == names.end();
  });
  return dtype == "int8" ? tensors : tensors_as(tensors, dtype_from_name(dtype));
}

// A folder has the tensors and files of the source, which its other readers know too.
NamedTensors folder_tensors(const weights::Checkpoint& checkpoint, const tasks::LoadedModel& model,
                            const tasks::Network& network, const ConvertCommandOptions& options,
                            std::optional<models::Int8Config>& int8) {
  if (options.dtype != "int8" && !int8) return tensors_as(tensors_of(checkpoint), dtype_from_name(options.dtype));
  const NativeNames native(network.module);
  NamedTensors tensors = other_tensors(checkpoint, network, native, options.dtype);  // refuses names before calibrating
  for (auto& item : native_tensors(model, network, options, int8)) {
    if (native.contains(item.first)) tensors.push_back(std::move(item));
  }
  return tensors;
}

void check_int8(const tasks::LoadedModel& model, const tasks::Network& network, const ConvertCommandOptions& options) {
  if (options.dtype != "int8") return;
  if (network.calibrated == nullptr) {
    throw CLI::ValidationError("--dtype", model.family() +
                                              " has two towers, which are quantised when they are loaded "
                                              "(--precision int8)");
  }
  if (is_onnx_file(options.output))
    throw CLI::ValidationError("--dtype", "expected fp32 for an ONNX file of " + model.family());
}

void print_written(const NamedModel& named, const tasks::Network& network, size_t tensors,
                   const ConvertCommandOptions& options, const std::optional<models::Int8Config>& int8) {
  print_note(fmt::format("{}: {} tensors, {} parameters, {}, under the names of {}", options.output, tensors,
                         network.module.num_parameters(), options.dtype, named.name));
  if (int8) print_excluded_layers(*int8, std::ssize(quantize::int8_layers(network.module)));
}

}  // namespace

int convert_network(const NamedModel& named, const ConvertCommandOptions& options, const GlobalOptions& global) {
  const auto model = tasks::open_model(*named.files, {.model = {.precision = kernels::Precision::fp32}});
  const tasks::Network network = network_of(*model, named.name);
  check_int8(*model, network, options);
  if (options.onnx.single_mask)
    throw CLI::ValidationError("--single-mask", "is for a Segment Anything model, which this is not");
  if (is_onnx_file(options.output)) return write_network_graph(*model, network, options, global);
  refuse_model_options(options.model, model->family());
  const std::vector<std::string> written{network.preprocessor_json.empty() ? "" : "preprocessor_config.json"};
  weights::check_no_other_processor(options.output, written);
  const std::optional<models::Int8Config> source = models::read_int8_config(network.config_json, named.name);
  std::optional<models::Int8Config> int8 = source;
  const NamedTensors tensors = folder_tensors(*named.files->checkpoint(), *model, network, options, int8);
  const std::string config = source || int8 ? models::with_int8_config(network.config_json, int8) : network.config_json;
  weights::write_hub_folder(options.output, config, tensors, network.preprocessor_json);
  copy_tokenizer(named.files->config.parent_path(), options.output);
  if (!global.quiet) print_written(named, network, tensors.size(), options, int8);
  return 0;
}

}  // namespace vitrail::app
