// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/inspect/inspect_table.h"

#include <algorithm>

#include "apps/vitrail/inspect/table_functions.h"
#include "apps/vitrail/shell/field_options.h"
#include "vitrail/base/text.h"

namespace vitrail::app {
namespace {

const InspectTable& table_named(const std::string& name) {
  return *std::ranges::find(inspect_tables(), name, &InspectTable::name);
}

std::vector<std::string> names_of_tables(bool (*chosen)(const InspectTable&)) {
  std::vector<std::string> names;
  for (const InspectTable& table : inspect_tables())
    if (chosen(table)) names.emplace_back(table.name);
  return names;
}

bool is_any(const InspectTable& /*table*/) { return true; }
bool has_many_images(const InspectTable& table) { return table.of_many_images; }
bool reads_class(const InspectTable& table) { return table.reads_class; }
bool reads_neuron(const InspectTable& table) { return table.reads_neuron; }

// Options that only some tables read.
struct TableOption {
  const char* name;
  bool (*read_by)(const InspectTable& table);
  bool required;
};
constexpr TableOption kTableOptions[] = {
    {"--images", has_many_images, true}, {"--neuron", reads_neuron, true}, {"--class", reads_class, false}};

std::string help_of_tables() {
  const auto help_of = [](const InspectTable& table) { return std::string(table.name) + ": " + table.help; };
  return "A table instead of the values: " + join(inspect_tables(), "; ", help_of);
}

// The help of a field lives as long as the program.
const char* help_of_option() {
  static const std::string help = help_of_tables();
  return help.c_str();
}

}  // namespace

const std::vector<InspectTable>& inspect_tables() {
  static const std::vector<InspectTable> tables{
      {"heads", "entropy, distance and share on special tokens of the attention of each head", print_heads},
      {"norms", "norms of the tokens behind each block, and artefacts among them", print_norms},
      {"lens", "class probabilities if each block were the last", print_lens, false, true},
      {"ablation", "change of a class's logit without each head", print_ablation, false, true},
      {"cka", "similarity of the blocks over --images", print_cka, true},
      {"neurons", "patches of --images that drive a hidden unit of an MLP most", print_neurons, true, false, true}};
  return tables;
}

void TableOptions::add_to(CLI::App& command) {
  add_field_options(command, [this](Fields& f) {
    f.choice({"table", help_of_option()}, name, names_of_tables(is_any));
  });
  command.add_option("--class", of_class,
                     "With --table " + join(names_of_tables(reads_class), " or ") +
                         ": class name or index (default: the predicted one)");
  command
      .add_option("--images", images,
                  "With --table " + join(names_of_tables(has_many_images), " or ") + ": images or folders")
      ->type_name("IMAGES");
  command.add_option(
      "--neuron", neuron,
      "With --table " + join(names_of_tables(reads_neuron), " or ") + ": BLOCK.INDEX of the hidden unit, from 0");
  for (const char* other : {"--gradient", "--slice", "--output", "--batch"})
    command.get_option("--table")->excludes(command.get_option(other));
}

void TableOptions::check(const CLI::App& command) const {
  const InspectTable* const table = name.empty() ? nullptr : &table_named(name);
  for (const auto& [option, read_by, required] : kTableOptions) {
    const bool given = !command.get_option(option)->empty(), read = table && read_by(*table);
    if (given && !read)
      throw CLI::ValidationError(option, "requires --table " + join(names_of_tables(read_by), " or "));
    if (!given && read && required) throw CLI::ValidationError("--table", name + " requires " + option);
  }
  if (!table) return;
  const bool traced = !command.get_option("--trace")->empty();
  if (traced && table->of_many_images)
    throw CLI::ValidationError("--trace", "does not apply to --table " + name + ", which has --images");
  if (!traced && !table->of_many_images)
    throw CLI::ValidationError("--table", name + " requires --trace IMAGE or --trace random");
}

void print_inspect_table(const TableInput& input) {
  const InspectTable& table = table_named(input.options.name);
  if (table.reads_class) models::require_classifier(input.config, input.source);
  table.print(input);
}

}  // namespace vitrail::app
