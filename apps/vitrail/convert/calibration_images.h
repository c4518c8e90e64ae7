// SPDX-License-Identifier: Apache-2.0
#pragma once
// The images that `convert --calibrate` names.
#include <string>
#include <vector>

#include "vitrail/models/model_config.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::app {

// Two sets of batches.  Rounding fits the weights to the calibration set: each image and three random crops of it.  The
// sensitivity is measured on other crops, because an error on the calibration set would be too optimistic.
struct CalibrationImages {
  std::vector<Tensor> calibration, validation;
};

// Takes at most 64 images, evenly spaced over `arguments` (files and folders).  `where` names the model in errors.
// Throws Error for an image that cannot be read, and CLI::ValidationError if there is none.
CalibrationImages calibration_images(const std::vector<std::string>& arguments, const models::ModelConfig& config,
                                     const std::string& where);

}  // namespace vitrail::app
