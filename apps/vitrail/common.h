// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shared by the subcommands: model options and model loading.
#include <CLI/CLI.hpp>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/image/transform.h"
#include "vitrail/infer/session.h"
#include "vitrail/models/load.h"
#include "vitrail/models/registry.h"

namespace vitrail::app {

// Options of the program.  They may appear before or after the subcommand.
struct GlobalOptions {
  int threads = 0;               // 0: all cores available to the process
  std::string precision;         // empty: int8 for an int8 model, else fp32
  int64_t decode_memory = 1024;  // in MiB, for the images of all decoding threads
  bool quiet = false;
  std::string command_line;  // as it was given, for records of a run
};

// The action of a subcommand.  Returns the exit status: 0, or 1 if an input failed.
using Run = std::function<int()>;

// -m and its companions: format of the weights and preprocessing of images.
struct ModelOptions {
  std::string model, config, key_map, preset, interpolation, crop_mode;
  std::vector<int64_t> image_size;
  std::vector<double> mean, std;
  std::optional<double> crop_pct;
  int64_t tome = 0;  // tokens merged per block

  void add_to(CLI::App& command, bool with_m = true);  // --model, and both of the following
  void add_source_to(CLI::App& command);               // --config, --key-map, --image-size
  void add_preprocessing_to(CLI::App& command);
  void add_merging_to(CLI::App& command);
  models::OpenedModel open() const;                                // applies the preprocessing options
  models::ModelConfig read_config(const std::string& from) const;  // likewise, without weights (models/load.h)
  models::VisionTransformerConfig config_of(const models::Architecture& row) const;  // at the given size
  std::optional<std::array<int64_t, 2>> given_image_size() const;

 private:
  void apply_to(models::ModelConfig& config) const;
};

// A model ready for inference, with its configuration and preprocessing.
struct LoadedModel {
  models::ModelConfig config;
  std::unique_ptr<infer::Session> session;
  image::EvalTransform transform;
  image::ColorMode mode;
};

// The requested precision, or else the model's own.
kernels::Precision precision_of(const models::ModelConfig& config, const GlobalOptions& global);
LoadedModel load_model(const ModelOptions& options, const GlobalOptions& global);

// The class names: from the given file, else from the model's configuration, else ImageNet-1k's for 1,000 classes, else
// empty.  The file has one name per line in UTF-8 (a byte-order mark and blank lines at the end are ignored), or JSON:
// a list of names, or id2label or label2id by themselves or in a config.json.  Throws Error if it does not have
// num_classes names.
std::vector<std::string> class_names(const models::ModelConfig& config, const std::string& labels_file);

}  // namespace vitrail::app
