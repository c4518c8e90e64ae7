// SPDX-License-Identifier: Apache-2.0
#pragma once
// Patch features as colours over an image, by the options of `vitrail pca`.
#include <string>

#include "vitrail/analysis/pca.h"
#include "vitrail/base/fields.h"
#include "vitrail/image/transform.h"
#include "vitrail/infer/session.h"

namespace vitrail::pipeline {

struct PcaOptions {
  infer::FeatureOptions features{.tokens = infer::Tokens::grid};  // one block
  std::string foreground = "none";                                // none, first or a number from 0 to 1
  bool invert = false;                                            // the foreground
  double opacity = 0.75;
};

void describe_pca(Fields& fields, PcaOptions& options);

// Throws Error for another text than those of `foreground`, and for `invert` without a foreground.
analysis::Foreground foreground_of(const PcaOptions& options);

// The colours of the maps over an image that `transform` preprocessed; the background becomes pale.
image::Image pca_overlay(const image::Image& photo, const analysis::PcaMaps& maps, double opacity,
                         const image::EvalTransform& transform);

}  // namespace vitrail::pipeline
