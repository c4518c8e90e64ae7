// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/commands/commands.h"
#include "apps/vitrail/output/output.h"
#include "vitrail/base/error.h"
#include "vitrail/hub/hub.h"

namespace vitrail::app {
namespace {

int pull(const std::vector<std::string>& names) {
  for (const std::string& text : names) {
    const auto name = hub::parse_name(text);
    if (!name) throw Error("vitrail pull", "ORGANISATION/NAME[@REVISION], a model of the hub", "'" + text + "'");
    print_output("{}\n", hub::pull(*name).string());
  }
  return 0;
}

}  // namespace

void add_pull(CLI::App& program, const GlobalOptions&, Run& run) {
  auto names = std::make_shared<std::vector<std::string>>();
  CLI::App* command = program.add_subcommand("pull", "Download models of the Hugging Face hub");
  command->footer("Example: vitrail pull timm/deit_tiny_patch16_224.fb_in1k");
  command->add_option("model", *names, "Models: organisation/name, or organisation/name@revision")->required();
  command->callback([names, &run] { run = [names] { return pull(*names); }; });
}

}  // namespace vitrail::app
