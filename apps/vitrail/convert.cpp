#include <fmt/core.h>

#include <filesystem>

#include "apps/vitrail/commands.h"
#include "vitrail/base/atomic_file.h"
#include "vitrail/base/error.h"
#include "vitrail/weights/hub_layout.h"

namespace vitrail::app {
namespace {

struct Options {
  ModelOptions model;
  std::string output, dtype = "fp32";
};

int convert(const Options& options, const GlobalOptions& global) {
  if (options.dtype == "int8") throw CLI::ValidationError("--dtype", "int8 is not part of this version");
  const DType dtype = dtype_from_name(options.dtype);
  const models::OpenedModel opened = options.model.open();
  models::VisionTransformer model = models::build_model(opened);
  model.to(dtype);
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const nn::NamedTensor& parameter : model.named_parameters())
    tensors.emplace_back(parameter.name, parameter.tensor);
  const std::filesystem::path folder = options.output;
  weights::write_hub_folder(folder, models::write_model_config(opened.config), tensors);
  const std::string preprocessor = models::write_preprocessor_config(opened.config.preprocessing);
  if (!preprocessor.empty()) {
    AtomicFile file(folder / "preprocessor_config.json");
    file.write(preprocessor);
    file.commit();
  }
  if (!global.quiet) {
    fmt::print(stderr, "{}: {} tensors, {} parameters, {} (read as {}, {})\n", folder.string(), tensors.size(),
               model.num_parameters(), name_of(dtype), opened.key_map.name(), opened.checkpoint->format());
  }
  return 0;
}

}  // namespace

void add_convert(CLI::App& program, const GlobalOptions& global, Run& run) {
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand("convert", "Write a model as a hub-layout folder with native keys");
  command->footer("Example: vitrail convert vit_b_16.pth --config vit_base_patch16_224 -o vit_b_16/");
  command->add_option("MODEL", options->model.model, "What to convert")->required();
  options->model.add_to(*command, false);
  command->add_option("-o,--output", options->output, "The folder")->required();
  command->add_option("--dtype", options->dtype, "fp32, bf16 or fp16")
      ->capture_default_str()
      ->check(CLI::IsMember({"fp32", "bf16", "fp16", "int8"}));
  command->callback([options, &global, &run] { run = [options, &global] { return convert(*options, global); }; });
}

}  // namespace vitrail::app
