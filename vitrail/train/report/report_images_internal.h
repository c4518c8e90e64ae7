// SPDX-License-Identifier: Apache-2.0
#pragma once
// Images of a run's report.
#include <vector>

#include "vitrail/train/report/report_internal.h"
#include "vitrail/train/run/run_data_internal.h"

namespace vitrail::train {

// An image of at most 160 pixels, which limits the size of the page.
image::Image make_thumbnail(const image::Image& image);

// Undoes the normalisation of image `index` of a batch [B, C, H, W].
image::Image pixels_of(const Tensor& images, int64_t index, const image::EvalTransform& transform);

// Up to 12 training images, evenly over the dataset, as they are and in a batch of the first epoch.  Images that cannot
// be read are left out.  `training`: the options of the training loader.
std::vector<Gallery> training_galleries(const Subset& train, const data::LoaderOptions& training);

// Up to `count` training images likewise, each followed by its views in the first epoch.
Gallery view_gallery(const Subset& train, const data::LoaderOptions& training, int64_t count);

}  // namespace vitrail::train
