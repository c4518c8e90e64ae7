// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the checkpoint of a run tells about it, without resuming it.
#include <filesystem>
#include <optional>

#include "vitrail/train/run/checkpoint.h"
#include "vitrail/train/run/checkpoint_internal.h"

namespace vitrail::train {

// The state in the last checkpoint of a run's folder, or in the previous one if that cannot be read.  Empty if there is
// none, as for a probe.
std::optional<CheckpointState> recorded_state(const std::filesystem::path& run, Checksum policy);

}  // namespace vitrail::train
