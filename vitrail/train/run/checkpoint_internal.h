// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reads an open checkpoint file, for load_checkpoint() and for fuzzing.
#include "vitrail/train/run/checkpoint.h"
#include "vitrail/weights/checkpoint.h"

namespace vitrail::train {

enum class Checksum {
  verify,
  ignore,  // for fuzzing: a mutated file hardly ever has the right one
};

// Throws Error as load_checkpoint() does.
CheckpointState read_checkpoint(const weights::Checkpoint& file, Checksum policy);

}  // namespace vitrail::train
