// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/run/recorded_state_internal.h"

#include "vitrail/base/error.h"

namespace vitrail::train {

std::optional<CheckpointState> recorded_state(const std::filesystem::path& run, Checksum policy) {
  for (const char* name : {"last.safetensors", "previous.safetensors"}) {
    try {
      return read_checkpoint(weights::Checkpoint::open(run / "checkpoints" / name), policy);
    } catch (const Error&) {
      continue;
    }
  }
  return std::nullopt;
}

}  // namespace vitrail::train
