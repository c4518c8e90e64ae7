// SPDX-License-Identifier: Apache-2.0
#pragma once
// The three ways in which an affine map reads its source; inside vitrail/image only.  Pixels whose source position lies
// outside the source are left as they are.
#include "vitrail/image/affine_internal.h"

namespace vitrail::image {

void sample_nearest(const Image& source, const AffineMatrix& matrix, Image& result);
void sample_bilinear(const Image& source, const AffineMatrix& matrix, Image& result);
void sample_bicubic(const Image& source, const AffineMatrix& matrix, Image& result);

}  // namespace vitrail::image
