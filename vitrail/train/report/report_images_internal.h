// SPDX-License-Identifier: Apache-2.0
#pragma once
// Images of a run's report.
#include <vector>

#include "vitrail/train/run/run_data_internal.h"

namespace vitrail::train {

// An image of at most 160 pixels, which limits the size of the page.
image::Image make_thumbnail(const image::Image& image);

struct ReportImages {
  std::vector<image::Image> examples;   // thumbnails
  std::vector<image::Image> augmented;  // the same images in a batch of the first epoch
};

// Up to 12 training images, evenly over the dataset.  Images that cannot be read are left out.  `training`: the options
// of the training loader.
ReportImages report_images(const Subset& train, const data::LoaderOptions& training);

}  // namespace vitrail::train
