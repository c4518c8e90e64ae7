// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shared by the subcommands: model options and model loading.
#include <CLI/CLI.hpp>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/models/load.h"
#include "vitrail/models/registry.h"
#include "vitrail/pipeline/model.h"

namespace vitrail::app {

// Options of the program.  They may appear before or after the subcommand.
struct GlobalOptions {
  int threads = 0;            // 0: all cores available to the process
  std::string precision;      // empty: int8 for an int8 model, else fp32
  int64_t decode_memory = 0;  // in MiB, for the images of all decoding threads; 0: the default
  int64_t max_memory = 0;     // in MiB, of the process; 0: no limit
  bool quiet = false;
  std::string command_line;  // as it was given, for records of a run
};

// The action of a subcommand.  Returns the exit status: 0, or 1 if an input failed.
using Run = std::function<int()>;

// -m and its companions: format of the weights and preprocessing of images.
struct ModelOptions {
  std::string model, config, key_map, adapter, preset, interpolation, crop_mode;
  std::optional<std::array<int64_t, 2>> image_size;  // height, width
  std::vector<double> mean, std;
  std::optional<double> crop_pct;
  int64_t tome = 0;  // tokens merged per block

  void add_name_to(CLI::App& command);                 // --model
  void add_to(CLI::App& command, bool with_m = true);  // --model, and both of the following
  void add_source_to(CLI::App& command);               // --config, --key-map, --image-size
  void add_preprocessing_to(CLI::App& command);
  void add_merging_to(CLI::App& command);
  std::vector<std::string> files() const { return {model, config, key_map, adapter}; }  // as given, or empty
  std::string path() const;  // the path or name of the model, by default of the bundled one
  models::LoadOptions load_options() const;
  models::OpenedModel open(const models::ModelFiles& files) const { return models::open_model(files, load_options()); }
  models::ModelConfig read_config(const std::string& from) const;  // likewise, without weights (models/load.h)
  models::VisionTransformerConfig config_of(const models::Architecture& row) const;  // at the given size
};

// Makes "-" standard input, for an option whose value is a text file.
void accept_dash(CLI::Option& option);

// The options of the library's Model.
vitrail::ModelOptions session_options_of(const ModelOptions& options, const GlobalOptions& global);

// labels: a file of class names, or empty.
Model load_model(const models::ModelFiles& files, const ModelOptions& options, const GlobalOptions& global,
                 const std::string& labels = "");
Model load_model(const ModelOptions& options, const GlobalOptions& global, const std::string& labels = "");

}  // namespace vitrail::app
