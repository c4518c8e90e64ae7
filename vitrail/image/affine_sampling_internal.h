// SPDX-License-Identifier: Apache-2.0
#pragma once
// The three sampling filters of affine maps.  Result pixels whose source position is outside the source are unchanged.
#include "vitrail/image/affine_internal.h"

namespace vitrail::image {

void sample_nearest(const Image& source, const AffineMatrix& matrix, Image& result);
void sample_bilinear(const Image& source, const AffineMatrix& matrix, Image& result);
void sample_bicubic(const Image& source, const AffineMatrix& matrix, Image& result);

}  // namespace vitrail::image
