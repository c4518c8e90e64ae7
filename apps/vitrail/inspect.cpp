// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include "apps/vitrail/commands.h"
#include "apps/vitrail/output.h"
#include "apps/vitrail/tensor_text.h"
#include "vitrail/autograd/variable.h"
#include "vitrail/base/error.h"
#include "vitrail/infer/preprocess.h"
#include "vitrail/models/registry.h"
#include "vitrail/nn/trace.h"

namespace vitrail::app {
namespace {

struct Options {
  ModelOptions model;
  std::string trace;
  std::vector<std::string> slices;
  bool tree = false, keys = false;
};

struct InspectedModel {
  models::ModelConfig config;
  std::optional<models::OpenedModel> opened;  // not set for a registered architecture, which has no weights
};

InspectedModel open(const Options& options) {
  if (const models::Architecture* row = models::find_architecture(options.model.model)) {
    models::ModelConfig config;
    config.architecture = row->name;
    config.vit = row->config;
    return {config, std::nullopt};
  }
  models::OpenedModel opened = options.model.open();
  return {opened.config, opened};
}

models::VisionTransformer build(const InspectedModel& inspected, Device device) {
  if (inspected.opened && device == Device::cpu) return models::build_model(*inspected.opened);
  RandomParams random(0, DType::f32, device);
  return models::VisionTransformer(inspected.config.vit, ParamSource(random));
}

std::string size_text(const std::array<int64_t, 2>& size) { return fmt::format("{}×{}", size[0], size[1]); }

void print_summary(const InspectedModel& inspected) {
  const auto& vit = inspected.config.vit;
  const models::VisionTransformer shapes = build(inspected, Device::meta);
  print_output("architecture  {}\n", inspected.config.architecture);
  if (inspected.opened) {
    print_output("weights       {} ({}), {} keys\n", inspected.opened->checkpoint->path(),
                 inspected.opened->checkpoint->format(), inspected.opened->key_map.name());
  }
  print_output("input         {} channels, image {}, patch {}\n", vit.in_chans, size_text(vit.img_size),
               size_text(vit.patch_size));
  print_output("model         width {}, depth {}, {} heads, {} classes\n", vit.embed_dim, vit.depth, vit.num_heads,
               vit.num_classes);
  print_output("parameters    {}\n", shapes.num_parameters());
}

// Prints the tensors of the weights file under their own keys, before the key map applies.
void print_keys(const InspectedModel& inspected) {
  if (!inspected.opened) {
    for (const nn::NamedTensor& p : build(inspected, Device::meta).named_parameters()) {
      print_output("{:50s} {:5s} {}\n", p.name, name_of(p.tensor.dtype()), p.tensor.shape().to_string());
    }
    return;
  }
  for (const weights::TensorInfo& info : inspected.opened->checkpoint->tensors()) {
    const std::string dtype = info.unsupported_dtype.empty() ? name_of(info.dtype) : info.unsupported_dtype;
    print_output("{:50s} {:5s} {}\n", info.name, dtype, info.shape.to_string());
  }
}

// Prints the module tree in PyTorch's format, then the parameter count of each module.
void print_tree(const InspectedModel& inspected) {
  const models::VisionTransformer model = build(inspected, Device::meta);
  print_output("{}\n\n{:50s} {:>12s}\n", model.to_string(), "module", "parameters");
  for (const auto& [name, module] : model.named_modules()) {
    const int64_t count = module->num_parameters();
    if (count > 0) print_output("{:50s} {:>12d}\n", name.empty() ? module->type() : name, count);
  }
}

Tensor trace_input(const Options& options, const models::ModelConfig& config) {
  if (options.trace == "random") {
    const auto& size = config.preprocessing.input_size ? *config.preprocessing.input_size : config.vit.img_size;
    return Tensor::randn({1, config.vit.in_chans, size[0], size[1]}, 1);
  }
  const auto transform = infer::transform_of(config.preprocessing, options.model.model);
  const image::DecodeOptions decode{.mode = infer::color_mode_of(config.vit.in_chans)};
  return image::apply(image::read_image(options.trace, decode), transform).unsqueeze(0);
}

void print_trace(const Options& options, const InspectedModel& inspected) {
  const models::VisionTransformer model = build(inspected, Device::cpu);
  std::vector<SliceRequest> requests;
  for (const std::string& text : options.slices) requests.push_back(parse_slice_request(text));
  std::vector<bool> found(requests.size(), false);
  if (requests.empty()) print_output("{:30s} {:24s} {:>10s} {:>10s}  first values\n", "name", "shape", "mean", "std");
  const Tensor input = trace_input(options, inspected.config);
  const nn::TraceScope scope([&](const std::string& name, const Tensor& tensor) {
    if (requests.empty()) {
      const Statistics s = statistics_of(tensor);
      print_output("{:30s} {:24s} {:10.4f} {:10.4f}  {}\n", name, tensor.shape().to_string(), s.mean,
                   s.standard_deviation, s.first);
    }
    for (size_t i = 0; i < requests.size(); ++i) {
      if (requests[i].name != name) continue;
      found[i] = true;
      const Tensor part = sliced(tensor, requests[i].slice);
      print_output("{} {}\n{}\n", options.slices[i], part.shape().to_string(), values_text(part));
    }
  });
  model.forward(input);
  for (size_t i = 0; i < requests.size(); ++i) {
    if (!found[i]) throw Error("--slice", "a tensor name that --trace lists", "\"" + requests[i].name + "\"");
  }
}

int inspect(const Options& options) {
  if (!options.slices.empty() && options.trace.empty())
    throw CLI::ValidationError("--slice", "requires --trace IMAGE or --trace random");
  const InspectedModel inspected = open(options);
  const bool summary = !options.tree && !options.keys && options.trace.empty();
  if (summary) print_summary(inspected);
  if (options.tree) print_tree(inspected);
  if (options.keys) print_keys(inspected);
  if (!options.trace.empty()) print_trace(options, inspected);
  return 0;
}

}  // namespace

void add_inspect(CLI::App& program, const GlobalOptions&, Run& run) {
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand("inspect", "Show a model's module tree, weights and intermediate values");
  command->footer(
      "Example: vitrail inspect -m MODEL --tree\n         vitrail inspect -m MODEL --trace photo.jpg --slice "
      "'blocks.0.attn.q[0, :, :3, 1]'");
  options->model.add_to(*command);
  command->add_option("MODEL", options->model.model, "Model (as for -m), or a registered architecture");
  command->add_flag("--tree", options->tree, "Module tree in PyTorch's format, with parameter counts");
  command->add_flag("--keys", options->keys, "Tensors of the weights file, with dtype and shape");
  command->add_option("--trace", options->trace,
                      "Image, or 'random': list the intermediate tensors of one forward pass");
  command
      ->add_option("--slice", options->slices,
                   "With --trace: print the values of NAME[...], in Python slice syntax; repeatable")
      ->allow_extra_args(false);
  command->callback([options, &run] { run = [options] { return inspect(*options); }; });
}

}  // namespace vitrail::app
