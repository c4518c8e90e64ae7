// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <memory>

#include "apps/vitrail/commands/commands.h"
#include "apps/vitrail/input/image_stream.h"
#include "apps/vitrail/output/output.h"
#include "apps/vitrail/output/output_checks.h"
#include "apps/vitrail/output/output_folder.h"
#include "apps/vitrail/shell/field_options.h"
#include "vitrail/analysis/pca.h"
#include "vitrail/base/error.h"
#include "vitrail/base/npy.h"
#include "vitrail/image/encode.h"
#include "vitrail/pipeline/pca_view.h"

namespace vitrail::app {
namespace {

namespace fs = std::filesystem;

struct PcaCommandOptions {
  ModelOptions model;
  StreamOptions images;
  pipeline::PcaOptions pca;
  std::string output;
  bool raw = false, force = false;
};

// A wrong option is a usage error.
analysis::Foreground foreground_of(const PcaCommandOptions& options) {
  if (options.pca.invert && options.pca.foreground == "none")
    throw CLI::ValidationError("--invert", "expected --foreground first or a number beside it, got none");
  try {
    return pipeline::foreground_of(options.pca);
  } catch (const Error& error) {
    throw CLI::ValidationError("--" + error.parts()->where,
                               "expected " + error.parts()->expected + ", got " + error.parts()->got);
  }
}

// The images whose features were computed.
struct GridFeatures {
  std::vector<size_t> index;
  std::vector<std::string> paths;
  std::vector<Tensor> grids;  // [rows, columns, D]
};

void write_raw(const fs::path& file, const Tensor& scores) {
  const Shape shape = scores.shape();
  write_npy(file, std::span(shape.begin(), static_cast<size_t>(shape.rank())), scores.data<float>());
}

// The overlays' paths without their extension.
std::vector<fs::path> outputs_of(const std::vector<std::string>& images, const PcaCommandOptions& options) {
  const FileSet inputs(images);
  UniqueNames names;
  std::vector<fs::path> outputs;
  for (const std::string& image : images) {
    outputs.push_back(fs::path(options.output) / names.name_of(image));
    check_output({"-o", outputs.back().string() + ".png", Kind::png}, inputs, options.force);
    if (options.raw) check_output({"--raw", outputs.back().string() + ".npy", Kind::array}, inputs, options.force);
  }
  return outputs;
}

int pca(const PcaCommandOptions& options, const analysis::Foreground& foreground, const GlobalOptions& global) {
  check_output_folder(options.output, options.images.inputs);
  create_output_folder(options.output, "the overlays");
  const Model model = load_model(options.model, global);
  const ImageSource source = image_source(options.images, model.color_mode());
  const infer::Request request{.output = infer::Output::features, .features = options.pca.features};
  GridFeatures features;
  const size_t failures = run_images(source, model, request, options.images.batch, global, [&](const Outcome& outcome) {
    if (!outcome.error.empty()) return;
    features.index.push_back(outcome.index);
    features.paths.push_back(outcome.path());
    features.grids.push_back(outcome.result());
  });
  if (features.grids.empty())
    throw Error("pca", "at least one image", failures == 0 ? "none" : "none that is readable");
  const std::vector<analysis::PcaMaps> maps = analysis::pca_maps(features.grids, foreground);
  const std::vector<fs::path> bases = outputs_of(features.paths, options);
  for (size_t i = 0; i < maps.size(); ++i) {
    const fs::path& base = bases[i];
    const image::Image photo = source.read(features.index[i]);
    image::write_png(base.string() + ".png",
                     pipeline::pca_overlay(photo, maps[i], options.pca.opacity, model.transform()));
    if (options.raw) write_raw(base.string() + ".npy", maps[i].scores);
  }
  return failures == 0 ? 0 : 1;
}

}  // namespace

void add_pca(CLI::App& program, const GlobalOptions& global, Run& run) {
  auto options = std::make_shared<PcaCommandOptions>();
  CLI::App* command = program.add_subcommand("pca", "Show patch features as colours");
  command->footer("Example: vitrail pca -m MODEL photos/ -o colors --foreground first");
  options->images.add_inputs_to(*command)->required();
  options->model.add_to(*command);
  command
      ->add_option("-o,--output", options->output,
                   "Folder for NAME.png of each image: the first three principal components of the patch features of "
                   "all images as red, green and blue, over the image")
      ->required();
  add_field_options(*command, pipeline::describe_pca, options->pca, {"layer", "no-norm", "foreground", "invert"});
  command->add_flag("--raw", options->raw,
                    "Write NAME.npy too: the unscaled scores, float32 [rows, columns, 3], NaN in the background");
  add_field_options(*command, pipeline::describe_pca, options->pca, {"opacity"});
  add_force_to(*command, options->force);
  options->images.add_to(*command);
  command->callback([options, &global, &run] {
    const analysis::Foreground foreground = foreground_of(*options);
    run = [options, foreground, &global] { return pca(*options, foreground, global); };
  });
}

}  // namespace vitrail::app
