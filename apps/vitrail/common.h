// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the subcommands share: the options that name a model, and how it is opened.
#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/image/transform.h"
#include "vitrail/infer/session.h"
#include "vitrail/models/load.h"

namespace vitrail::app {

// Options before or after any subcommand.
struct GlobalOptions {
  int threads = 0;        // 0: all cores the process may run on
  std::string precision;  // empty: the model's own, or fp32
  bool quiet = false;
};

// What a subcommand ends with: 0, or 1 when an input failed.
using Run = std::function<int()>;

// -m and what goes with it: how the weights are to be understood, and how images are prepared.
struct ModelOptions {
  std::string model, config, key_map, preset, interpolation, crop_mode;
  std::vector<int64_t> image_size;
  std::vector<double> mean, std;
  double crop_pct = 0;
  int64_t tome = 0;

  void add_to(CLI::App& command, bool with_m = true);
  void add_merging_to(CLI::App& command);
  models::OpenedModel open() const;  // with the preprocessing options applied
};

// A model ready to answer, with what is needed to feed it and to name its answers.
struct ReadyModel {
  models::ModelConfig config;
  std::unique_ptr<infer::Session> session;
  image::EvalTransform transform;
  image::ColorMode mode;
};
// The precision asked for, or the model's own.
kernels::Precision precision_of(const models::ModelConfig& config, const GlobalOptions& global);
ReadyModel ready_model(const ModelOptions& options, const GlobalOptions& global);

// The names of a model's classes: of the file given, of its configuration, or ImageNet-1k's for 1,000 unnamed ones;
// empty when nobody names them.  Throws Error when a file's count is not num_classes.
std::vector<std::string> class_names(const models::ModelConfig& config, const std::string& labels_file);

}  // namespace vitrail::app
