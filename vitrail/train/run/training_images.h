// SPDX-License-Identifier: Apache-2.0
#pragma once
// Finds the training images of a model's run among others.
#include <filesystem>

#include "vitrail/data/datasets/manifest.h"

namespace vitrail::train {

// Warns if `dataset` has images that the model was trained on (data::find_shared_images), as its run's recipe.json
// says. model: a run's folder, or its model/ or last/.  Also warns if the recipe's training images are not where they
// were or have changed, as far as the run's checkpoint tells.  Does nothing for other models.
// The run may come from anywhere: where its recipe names a pipe or a device, or a folder with far more files than the
// run had images, nothing is compared, and a warning says so.
// manifests: the sets that were read already.
void warn_of_training_images(const std::filesystem::path& model, const data::Dataset& dataset,
                             const data::Manifests& manifests = {});

}  // namespace vitrail::train
