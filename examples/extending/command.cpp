// SPDX-License-Identifier: Apache-2.0
// A program with a subcommand, built as apps/vitrail is.  In the vitrail program, add_parameters() would be a file of
// its own, and VITRAIL_COMMANDS in apps/vitrail/commands/commands.h would name it.
//
//   example_extending_command parameters vit_tiny_patch16_224
#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>

#include "vitrail/base/error.h"
#include "vitrail/models/registry.h"
#include "vitrail/models/vision_transformer.h"

namespace {

using namespace vitrail;

using Run = std::function<int()>;  // what the chosen command does; returns the exit status

struct ParametersOptions {
  std::string architecture;
};

int count_parameters(const ParametersOptions& options) {
  const models::Architecture* const found = models::find_architecture(options.architecture);
  if (!found) {
    throw Error(options.architecture,
                "a registered architecture, such as " + models::similar_architectures(options.architecture).front(),
                "none");
  }
  RandomParams shapes(0, DType::f32, Device::meta);  // no memory is allocated
  const models::VisionTransformer model(found->config, ParamSource(shapes));
  std::printf("%lld parameters\n", static_cast<long long>(model.num_parameters()));
  return 0;
}

// The options live as long as the command, which CLI11 fills while it parses.
void add_parameters(CLI::App& program, Run& run) {
  auto options = std::make_shared<ParametersOptions>();
  CLI::App* command = program.add_subcommand("parameters", "Count the parameters of an architecture");
  command->footer("Example: example_extending_command parameters vit_tiny_patch16_224");
  command->add_option("ARCHITECTURE", options->architecture, "A registered name")->required();
  command->callback([options, &run] { run = [options] { return count_parameters(*options); }; });
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App program("An example of a subcommand");
  program.require_subcommand(1);
  Run run;
  add_parameters(program, run);
  CLI11_PARSE(program, argc, argv);
  try {
    return run();
  } catch (const Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
