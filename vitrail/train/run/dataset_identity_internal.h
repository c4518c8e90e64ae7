// SPDX-License-Identifier: Apache-2.0
#pragma once
// What identifies the images of a dataset, so that results computed from them are not used for others.
#include <memory>
#include <string>

#include "vitrail/data/datasets/dataset.h"

namespace vitrail::train {

// A text that differs if images are added, removed, renamed, labelled or numbered otherwise, or if a file with images
// has another size or modification time; for datasets without such times, if an image has another content.
std::string dataset_identity(const std::shared_ptr<const data::Dataset>& dataset);

}  // namespace vitrail::train
