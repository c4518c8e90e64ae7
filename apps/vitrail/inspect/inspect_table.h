// SPDX-License-Identifier: Apache-2.0
#pragma once
// inspect --table: what the blocks, heads, tokens and neurons of a Vision Transformer do, as a table.
#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "apps/vitrail/input/image_inputs.h"
#include "vitrail/models/model_config.h"
#include "vitrail/models/vision_transformer.h"

namespace vitrail::app {

struct TableOptions {
  std::string name;                 // a row of inspect_tables(); empty: no table
  std::string of_class;             // the name or index of a class; empty: the predicted one
  std::vector<std::string> images;  // files and folders
  std::string neuron;               // "BLOCK.INDEX"

  void add_to(CLI::App& command);  // --table, --class, --images, --neuron; after --trace
  // Throws CLI::ValidationError for options that the table lacks or does not read.
  void check(const CLI::App& command) const;
};

// The model and the images that a table is made from.
struct TableInput {
  std::string source;  // the model's name, for messages
  const models::VisionTransformer& model;
  const models::ModelConfig& config;
  const TableOptions& options;
  Tensor image;                                                 // [1, C, H, W], or undefined for tables of --images
  std::function<Tensor(ImageInputs& inputs, size_t i)> read{};  // the i-th image of --images, [1, C, H, W]
  bool quiet = false;
};

// A table is a row: its name, its line in the help, the options that it reads, and its function.
struct InspectTable {
  const char *name, *help;
  void (*print)(const TableInput& input);
  bool of_many_images = false;  // it is about --images; else about the image of --trace
  bool reads_class = false, reads_neuron = false;
};
const std::vector<InspectTable>& inspect_tables();

// Prints the table of the options.  Throws Error for a model or images that it cannot be made from.
void print_inspect_table(const TableInput& input);

}  // namespace vitrail::app
