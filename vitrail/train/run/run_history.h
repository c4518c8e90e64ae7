// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the folder of a training run tells about its course.
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "vitrail/data/datasets/dataset.h"

namespace vitrail::train {

// A model that Recipe::explain kept, with config.json and model.safetensors.
struct KeptModel {
  int64_t epoch = 0;  // 0: before the first step
  std::filesystem::path folder;
};

std::string kept_folder(int64_t epoch);                                // in the run's: "explain/epoch-0005"
std::vector<KeptModel> kept_models(const std::filesystem::path& run);  // by their epochs; none: an empty list

// A column of metrics.csv over the epochs.
struct RunCurve {
  std::string event;                             // "train", "val" (from the start on), "val_ema": which rows
  std::string column;                            // "loss" or a score
  std::vector<double> epochs = {}, values = {};  // with fractions of epochs

  void add(double epoch, double value) {
    epochs.push_back(epoch);
    values.push_back(value);
  }
};

// The losses and scores of training and validation, from metrics.csv.  Throws Error for a file without its columns.
std::vector<RunCurve> run_curves(const std::filesystem::path& run);

// Whether the folder has a recipe.json.
bool is_run(const std::filesystem::path& folder);
std::string objective_of_run(const std::filesystem::path& run);

// The labelled images that decide in the run: validation, without them test images.
struct HeldOutImages {
  std::shared_ptr<const data::Dataset> dataset;
  std::vector<int64_t> samples;      // indices in the dataset
  std::vector<std::string> classes;  // names by index
};

// Opens the datasets of the run's recipe again; decode: their colour mode.  Throws Error if that fails, for a run
// without such images, and for images with several labels.
HeldOutImages held_out_images(const std::filesystem::path& run, const image::DecodeOptions& decode);

}  // namespace vitrail::train
