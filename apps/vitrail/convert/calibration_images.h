// SPDX-License-Identifier: Apache-2.0
#pragma once
// The images that `convert --calibrate` names.
#include <functional>
#include <string>
#include <vector>

#include "vitrail/image/decode.h"
#include "vitrail/models/model_config.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::app {

// Two sets of images.  Rounding fits the weights to the calibration set.  The sensitivity is measured on other crops,
// because an error on the calibration set would be too optimistic.
struct CalibrationSets {
  size_t max_images = 64;        // evenly spaced over the arguments
  int crops = 3;                 // random crops of each image that calibrate, too
  size_t validation_stride = 4;  // one of this many images also gives a validation crop
};

// Hands the images of files and folders to the sets that they belong to.  Throws Error for an image that cannot be
// read, and CLI::ValidationError if there is none.
void read_calibration_images(const std::vector<std::string>& arguments, const image::DecodeOptions& decode,
                             const CalibrationSets& sets, const std::function<void(const image::Image&)>& calibrate,
                             const std::function<void(const image::Image&)>& validate);

// For a classifier: batches of preprocessed images.
struct CalibrationImages {
  std::vector<Tensor> calibration, validation;
};

// `where` names the model in errors.
CalibrationImages calibration_images(const std::vector<std::string>& arguments, const models::ModelConfig& config,
                                     const std::string& where);

}  // namespace vitrail::app
