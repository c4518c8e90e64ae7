// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "vitrail/quantize/block_layers_internal.h"

namespace vitrail::quantize {

// The output Hessians of layers (output_hessians_internal.h); a layer without one has the identity.
using OutputHessians = std::function<std::map<std::string, Tensor>(const std::vector<std::string>& layers)>;

// gptq_round() (rounding.h) of a Vision Transformer whose parameters may be written to.  run: computes the calibration
// images layer by layer.
std::map<std::string, Tensor> round_blocks(const VitBlocks& blocks, const std::function<void()>& run,
                                           const OutputHessians& output_hessians);

}  // namespace vitrail::quantize
