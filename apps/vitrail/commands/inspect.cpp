// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <set>

#include "apps/vitrail/commands/commands.h"
#include "apps/vitrail/families/family.h"
#include "apps/vitrail/inspect/inspect_layer.h"
#include "apps/vitrail/inspect/inspect_tree.h"
#include "apps/vitrail/inspect/inspect_values.h"
#include "apps/vitrail/output/output.h"
#include "apps/vitrail/output/output_checks.h"
#include "apps/vitrail/shell/field_options.h"
#include "apps/vitrail/shell/usage_errors.h"

namespace vitrail::app {
namespace {

struct InspectCommandOptions {
  ModelOptions model;
  ValueOptions values;
  TableOptions table;
  std::vector<std::string> settings;  // layer:NAME only
  bool tree = false, keys = false, force = false;
};

// Whether the options name a configuration alone.
bool names_no_weights(const ModelOptions& model) {
  return is_configuration(model.model) || (model.model.empty() && !model.config.empty());
}

// A layer has no weights, preprocessing and tensors between modules.
void check_layer_options(const CLI::App& command) {
  const std::set<std::string> options{"--model", "MODEL", "--set", "--slice", "--batch"};
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    if (!option->empty() && !options.contains(name))
      throw CLI::ValidationError(name, "does not apply to a layer, which has --set, --slice and --batch");
  }
}

void check_output_of(const InspectCommandOptions& options) {
  const std::string& output = options.values.output;
  if (output.empty()) return;
  if (options.values.trace.empty()) throw CLI::ValidationError("-o", "requires --trace IMAGE or --trace random");
  if (output != "-" && std::filesystem::path(output).extension() != ".npz")
    throw CLI::ValidationError("-o", "expected FILE.npz, got '" + output + "'");
  std::vector<std::string> inputs = options.model.files();
  inputs.push_back(options.values.trace);
  check_outputs({{"-o", output, Kind::archive}}, inputs, options.force);
}

int inspect(const InspectCommandOptions& options, const GlobalOptions& global) {
  const ValueOptions& values = options.values;
  if (options.model.model.starts_with(kLayerPrefix)) {
    print_layer({options.model.model.substr(kLayerPrefix.size()), options.settings, values.slices, values.batch});
    return 0;
  }
  if (!options.settings.empty()) throw CLI::ValidationError("--set", "is for layers, as in: vitrail inspect layer:mlp");
  const bool has_table = !options.table.name.empty();
  const bool has_values = !values.trace.empty() || !values.slices.empty() || has_table;
  const bool no_weights = names_no_weights(options.model);
  const NamedModel model = no_weights ? NamedModel{options.model.model, {}} : open_named(options.model.path());
  if (options.keys && !options.tree && !has_values && !no_weights) {
    print_keys(*model.files->checkpoint());  // whatever they are: a key map may be still to be written
    return 0;
  }
  const std::unique_ptr<InspectedModel> inspected = family_of(model).inspect(model, options.model, values);
  const weights::Checkpoint* const checkpoint = inspected->checkpoint();
  if (has_values && !checkpoint && !global.quiet)
    print_note("vitrail: " + inspected->source() + " has no weights; parameters are random (seed 0)");
  if (!options.tree && !options.keys && !has_values) inspected->print_summary();
  if (options.tree) print_tree(*inspected->build(Device::meta));
  if (options.keys && checkpoint) print_keys(*checkpoint);
  if (options.keys && !checkpoint) print_parameters(*inspected->build(Device::meta));
  if (has_table) {
    inspected->print_table(options.table, global.quiet);
  } else if (has_values) {
    print_values(values, *inspected);
  }
  return 0;
}

}  // namespace

void add_inspect(CLI::App& program, const GlobalOptions& global, Run& run) {
  auto options = std::make_shared<InspectCommandOptions>();
  CLI::App* command = program.add_subcommand("inspect", "Show a model's module tree, weights and intermediate values");
  command->footer(
      "Example: vitrail inspect -m MODEL --tree\n         vitrail inspect -m MODEL --trace photo.jpg --slice "
      "'blocks.0.attn.q[0, :, :3, 1]'\n         vitrail inspect -m MODEL --trace photo.jpg --table heads\n         "
      "vitrail inspect layer:multihead_attention --set mask=causal\n"
      "Layers and their settings: vitrail inspect layer:");
  options->model.add_to(*command);
  const CLI::Option* model = command->get_option("--model");
  const CLI::Option* named = command->add_option(
      "MODEL", options->model.model,
      "Model (as for -m), or without weights: a config.json, a registered architecture, layer:NAME");
  command->add_flag("--tree", options->tree, "Module tree in PyTorch's format, with parameter counts");
  command->add_flag("--keys", options->keys, "Tensors of the weights file, with dtype and shape");
  CLI::Option* trace = command->add_option("--trace", options->values.trace,
                                           "Image, or 'random': list the intermediate tensors of one forward pass");
  CLI::Option* gradient = command->add_option(
      "--gradient", options->values.gradient,
      "With --trace: class name or index; the gradients of its logit by these tensors and by the parameters");
  command->add_option("-o,--output", options->values.output,
                      "With --trace: FILE.npz, the intermediate tensors as arrays by their names");
  add_force_to(*command, options->force);
  command
      ->add_option(
          "--slice", options->values.slices,
          "Print the values of a parameter or, with --trace, of an intermediate tensor: NAME[...], with Python "
          "slices without steps; repeatable")
      ->allow_extra_args(false);
  add_field_options(*command, [options](Fields& f) {
    f.integer({"batch", "Batch size of --trace and of layers: random inputs, or copies of the image"},
              options->values.batch, 1);
  });
  options->table.add_to(*command);
  const CLI::Option* batch = command->get_option("--batch");
  command->add_option("--set", options->settings, "NAME=VALUE, a setting of layer:NAME; repeatable")
      ->allow_extra_args(false);
  command->callback([=, &global, &run] {
    if (!model->empty() && !named->empty()) throw CLI::ValidationError("-m", "names a model, and so does MODEL");
    const bool is_layer = options->model.model.starts_with(kLayerPrefix);
    if (is_layer) check_layer_options(*command);
    if (!batch->empty() && trace->empty() && !is_layer)
      throw CLI::ValidationError("--batch", "requires --trace IMAGE or --trace random");
    if (!gradient->empty() && trace->empty())
      throw CLI::ValidationError("--gradient", "requires --trace IMAGE or --trace random");
    options->table.check(*command);
    check_output_of(*options);
    run = [options, &global] { return inspect(*options, global); };
  });
}

}  // namespace vitrail::app
