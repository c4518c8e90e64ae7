// SPDX-License-Identifier: Apache-2.0
#pragma once
// Checks of the data of a run before its work begins.
#include <cstdint>
#include <string>
#include <vector>

#include "vitrail/train/run_data_internal.h"

namespace vitrail::train {

// Throws Error naming the first class whose name is not UTF-8: config.json could not be written at the end.
void check_class_names(const std::vector<std::string>& classes, const std::string& where);

// Number of images of `subset` that are files of the training images too, by canonical path.  Held-out images are
// samples of the same dataset and are compared by index.
int64_t shared_with_training(const Subset& train, const Subset& subset);

// Warns if validation or test images are training images.
void warn_of_shared_images(const RunData& data);

}  // namespace vitrail::train
