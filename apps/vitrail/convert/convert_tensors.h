// SPDX-License-Identifier: Apache-2.0
#pragma once
// The tensors that `convert` writes, in its data type.
#include "apps/vitrail/convert/convert_int8.h"
#include "vitrail/nn/module.h"
#include "vitrail/weights/checkpoint.h"

namespace vitrail::app {

NamedTensors parameters_of(const nn::Module& model);

// The tensors of a model's file, under the file's names.
NamedTensors tensors_of(const weights::Checkpoint& checkpoint);

// The tensors as `dtype`.  Integers and single numbers (logit_scale) stay as they are, and so do tensors with values
// beyond the range of `dtype`, which is said once.
NamedTensors tensors_as(const NamedTensors& tensors, DType dtype);

}  // namespace vitrail::app
