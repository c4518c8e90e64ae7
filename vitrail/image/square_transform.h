// SPDX-License-Identifier: Apache-2.0
#pragma once
// The input of models that see an image in the upper left corner of a square.
#include "vitrail/image/transform.h"

namespace vitrail::image {

// [channels, S, S], as transformers' Owlv2ImageProcessor with Pillow: black is added right and below to make a square,
// which is resized with mirrored borders by linear interpolation, behind a Gaussian of σ = (reduction factor − 1) / 2
// (scipy.ndimage's zoom and gaussian_filter), and normalised.  S: the transform's fixed size.
Tensor apply_to_square(const ImageView& source, const EvalTransform& transform);

}  // namespace vitrail::image
