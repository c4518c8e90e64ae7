// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <filesystem>

#include "apps/vitrail/commands/commands.h"
#include "apps/vitrail/output/output.h"
#include "apps/vitrail/output/output_checks.h"
#include "apps/vitrail/shell/field_options.h"
#include "vitrail/base/error.h"
#include "vitrail/base/npy.h"
#include "vitrail/image/encode.h"
#include "vitrail/pipeline/attention_view.h"
#include "vitrail/pipeline/differentiable_model.h"

namespace vitrail::app {
namespace {

struct AttentionCommandOptions {
  ModelOptions model;
  pipeline::AttentionOptions attention;
  std::string image, output, raw, labels;
  bool exif = false, force = false;
};

// The library's error names a field, the command line's its option.
void check_selection(const AttentionCommandOptions& options, const Model& model) {
  try {
    pipeline::check_attention(model, options.attention);
  } catch (const Error& error) {
    throw Error("--" + error.parts()->where, error.parts()->expected, error.parts()->got);
  }
}

// Writes the attention weights of all blocks, each [1, H, N, N], as one array [blocks, H, N, N].
void write_raw(const std::string& path, const std::vector<Tensor>& weights) {
  const Shape shape = weights[0].shape();
  NpyWriter file(path, DType::f32, std::span(shape.begin() + 1, 3), static_cast<int64_t>(weights.size()));
  for (const Tensor& block : weights) file.write_rows(block.data<float>(), 1);
  file.finish();
}

// Whether integrated gradients add up to what they attribute.
void print_completeness(const pipeline::Completeness& completeness, const std::string& class_name) {
  print_note(
      fmt::format("vitrail: integrated gradients: sum {:.4g}; the logits of {} for image and baseline differ by "
                  "{:.4g}",
                  completeness.sum, escaped(class_name), completeness.difference));
}

int visualise_attention(const AttentionCommandOptions& options, const GlobalOptions& global) {
  const models::OpenedModel opened = options.model.open(models::ModelFiles(options.model.path()));
  vitrail::ModelOptions session = session_options_of(options.model, global);
  session.labels = options.labels;
  const Model model(opened, session);
  check_selection(options, model);
  const image::Image photo = model.read(options.image, {.apply_exif = options.exif});
  const Tensor input = image::apply(photo, model.transform()).unsqueeze(0);
  const pipeline::AttributionMethod* const method = pipeline::attribution_method(options.attention);
  pipeline::AttendedImage image{.name = options.image,
                                .width = photo.width,
                                .height = photo.height,
                                .size = {input.size(2), input.size(3)},
                                .weights = {}};
  if (!method || !options.raw.empty())
    image.weights =
        model.session().run(input, pipeline::attention_request(model, options.attention, !options.raw.empty()));
  if (!options.raw.empty()) write_raw(options.raw, image.weights);
  if (options.output.empty()) return 0;
  Tensor logits;
  if (method) {
    const pipeline::DifferentiableModel differentiable(opened);
    image.attribution =
        pipeline::attribute(*method, model, differentiable.model(), input, options.attention.attribution);
    logits = image.attribution->logits;
    if (image.attribution->completeness && !global.quiet)
      print_completeness(*image.attribution->completeness, model.class_name(image.attribution->target));
  } else if (model.config().vit.num_classes > 0 && !model.config().vit.projection_head) {
    logits = model.session().logits(input);
  }
  image::write_png(options.output, pipeline::attention_figure(model, options.attention, photo, image, logits));
  return 0;
}

}  // namespace

void add_attention(CLI::App& program, const GlobalOptions& global, Run& run) {
  auto options = std::make_shared<AttentionCommandOptions>();
  CLI::App* command = program.add_subcommand("attention", "Visualise attention");
  command->footer("Example: vitrail attention -m MODEL photo.jpg -o attention.png --method gradient_attention");
  command->add_option("IMAGE", options->image, "Input image")->required();
  options->model.add_to(*command);
  CLI::Option* output = command->add_option("-o,--output", options->output,
                                            "FILE.png: the image beside its attention map, with scale and caption");
  add_field_options(*command, pipeline::describe_attention, options->attention,
                    {"layer", "head", "query", "method", "class", "baseline"});
  accept_dash(*command->add_option("--labels", options->labels, "Class names for the caption, as for classify"));
  add_field_options(*command, pipeline::describe_attention, options->attention, {"rollout"},
                    [command](CLI::Option& option) {
                      option.excludes(command->get_option("--layer"))->excludes(command->get_option("--head"));
                    });
  CLI::Option* raw =
      command->add_option("--raw", options->raw, "FILE.npy: all attention weights, float32 [layers, heads, N, N]");
  add_force_to(*command, options->force);
  command->add_flag("--exif", options->exif, "Apply the EXIF orientation");
  command->callback([=, &global, &run] {
    if (options->image == "-")
      throw CLI::ValidationError("IMAGE", "expected a file, got '-' (for standard input: /dev/stdin)");
    if (!output->empty() && options->output != "-" && std::filesystem::path(options->output).extension() != ".png")
      throw CLI::ValidationError("-o", "expected FILE.png, got '" + options->output + "'");
    if (const size_t count = options->attention.query.size(); count != 0 && count != 2)
      throw CLI::ValidationError("--query", "expected X,Y in pixels, got another number of values");
    if (options->output == "-") options->output = "/dev/stdout";
    std::vector<std::string> inputs = options->model.files();
    inputs.insert(inputs.end(), {options->image, options->labels});
    check_outputs({{"-o", options->output, Kind::png}, {"--raw", options->raw, Kind::array}}, inputs, options->force);
    if (output->empty() && raw->empty())
      throw CLI::ValidationError("-o", "expected FILE.png, or --raw FILE.npy instead, got none");
    run = [options, &global] { return visualise_attention(*options, global); };
  });
}

}  // namespace vitrail::app
