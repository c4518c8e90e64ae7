// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include "apps/vitrail/commands/commands.h"
#include "apps/vitrail/output/output.h"
#include "vitrail/models/bundled.h"
#include "vitrail/models/registry.h"
#include "vitrail/models/sam/architectures.h"
#include "vitrail/models/sam/sam.h"

namespace vitrail::app {
namespace {

void list_bundled() {
  for (const models::BundledModel& model : models::bundled_models()) {
    print_output("{:34s} {}{}\n", model.name, escaped(model.folder.string()),
                 model.name == models::kDefaultModel ? " (default)" : "");
  }
}

struct ArchitectureRow {
  std::string name;
  int64_t image, patch, width, depth, heads, parameters;
  std::string source;
};

void list_architecture(const ArchitectureRow& row) {
  print_output("{:34s} {:>7d} {:>9d} {:>6d} {:>6d} {:>6d} {:>9.2f} M  {}\n", row.name, row.image, row.patch, row.width,
               row.depth, row.heads, static_cast<double>(row.parameters) / 1e6, row.source);
}

int list_models() {
  if (!models::bundled_models().empty()) {
    print_output("{:34s} {}\n", "bundled model", "folder");
    list_bundled();
    print_output("\n");
  }
  print_output("{:34s} {:>7s} {:>9s} {:>6s} {:>6s} {:>6s} {:>11s}  {}\n", "architecture", "image", "patch", "width",
               "depth", "heads", "parameters", "source");
  for (const models::Architecture& row : models::architectures()) {
    RandomParams meta(0, DType::f32, Device::meta);  // shapes only: no memory is allocated
    const models::VisionTransformer model(row.config, ParamSource(meta));
    list_architecture({row.name, row.config.img_size[0], row.config.patch_size[0], row.config.embed_dim,
                       row.config.depth, row.config.num_heads, model.num_parameters(), row.credit});
  }
  for (const models::SamArchitecture& row : models::sam_architectures()) {
    RandomParams meta(0, DType::f32, Device::meta);
    const models::Sam model(row.config, ParamSource(meta));
    const models::SamEncoderConfig& encoder = row.config.encoder;
    list_architecture({row.name, encoder.image_size(), encoder.patch_size, encoder.dim,
                       static_cast<int64_t>(encoder.blocks.size()), encoder.num_heads, model.num_parameters(),
                       "Kirillov et al. 2023"});
  }
  return 0;
}

}  // namespace

void add_models(CLI::App& program, const GlobalOptions&, Run& run) {
  CLI::App* command = program.add_subcommand("models", "List bundled models and registered architectures");
  command->footer("Example: vitrail models");
  command->callback([&run] { run = list_models; });
}

}  // namespace vitrail::app
