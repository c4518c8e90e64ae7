// SPDX-License-Identifier: Apache-2.0
#pragma once
// big_vision's files of scanned models: one tensor has a parameter of all layers, with the layers as first axis.
#include <memory>

#include "vitrail/weights/tensor_file.h"

namespace vitrail::weights {

// The file with "encoderblock/NAME" [L, …] as L tensors "encoderblock_0/NAME", …; a file without such names as it is.
// Throws Error for a tensor without layers, and for too many layers.
std::unique_ptr<TensorFile> unstack_layers(std::unique_ptr<TensorFile> file, const std::string& where);

}  // namespace vitrail::weights
