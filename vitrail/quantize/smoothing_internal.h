// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <vector>

#include "vitrail/quantize/block_layers_internal.h"

namespace vitrail::quantize {

// smooth_activations() (smoothing.h) of Vision Transformers whose parameters may be written to.  run: computes the
// calibration images layer by layer.
void smooth_blocks(const std::vector<VitBlocks>& stacks, const std::function<void()>& run);

}  // namespace vitrail::quantize
