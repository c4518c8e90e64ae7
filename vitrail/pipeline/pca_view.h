// SPDX-License-Identifier: Apache-2.0
#pragma once
// Patch features as colours over an image, by the options of `vitrail pca`.
#include <string>

#include "vitrail/analysis/pca.h"
#include "vitrail/image/transform.h"

namespace vitrail::pipeline {

// none, first or a number from 0 to 1.  Throws Error for another text, and for `invert` without a foreground.
analysis::Foreground foreground_from_name(const std::string& name, bool invert);

// The colours of the maps over an image that `transform` preprocessed; the background becomes pale.
image::Image pca_overlay(const image::Image& photo, const analysis::PcaMaps& maps, double opacity,
                         const image::EvalTransform& transform);

}  // namespace vitrail::pipeline
