// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "vitrail/weights/checkpoint.h"

namespace vitrail::models {

// An extent of a checkpoint's tensor; 0 without one.
inline int64_t extent_of(const weights::Checkpoint& checkpoint, const std::string& name, int axis) {
  if (!checkpoint.has(name)) return 0;
  const Shape& shape = checkpoint.info(name).shape;
  return axis < shape.rank() ? shape[axis] : 0;
}

}  // namespace vitrail::models
