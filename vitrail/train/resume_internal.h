// SPDX-License-Identifier: Apache-2.0
#pragma once
// How a run takes up what its folder holds.
#include <optional>
#include <string>
#include <vector>

#include "vitrail/train/checkpoint.h"
#include "vitrail/train/run_folder_internal.h"
#include "vitrail/train/trainer.h"

namespace vitrail::train {

// The state of a run that may be resumed, compared with what is about to go on; nothing where the folder holds no run.
// Throws Error for a run that is not to be resumed, and for another recipe where no changes are allowed.
std::optional<CheckpointState> resumable(const RunFolder& folder, const Recipe& recipe, const TrainerOptions& options,
                                         const Fingerprint& now);

// Where a run goes on whose batches now hold `batch_images`, all processes counted.  With another number than before no
// image of the epoch is left out, and less than a step's are seen again.
Position resumed_at(Position position, int64_t batch_images, int64_t batches, int64_t accumulate);

// Copies tensors by name.  Throws Error with `where` when names or shapes are not the same.
void copy_weights(const std::vector<nn::NamedTensor>& from, const std::vector<nn::NamedTensor>& to,
                  const std::string& where);

}  // namespace vitrail::train
