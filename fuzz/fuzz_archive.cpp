// SPDX-License-Identifier: Apache-2.0
// Feeds arbitrary bytes to the reader of checkpoints of any format, and so to zip, pickle and both forms of torch.save:
// tensors or a vitrail::Error, nothing else.
#include "vitrail/base/error.h"
#include "vitrail/weights/checkpoint.h"
#include "vitrail/weights/pytorch/pickle_internal.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace vitrail::weights;
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  try {
    Pickle({bytes, size},
           "fuzz");  // what stands in a zip archive lies behind its checksums; here it is reached at once
  } catch (const vitrail::Error&) {
  }
  try {
    const Checkpoint checkpoint = Checkpoint::open(FileBytes::hold({bytes, bytes + size}, "fuzz"));
    for (const TensorInfo& info : checkpoint.tensors()) {
      try {
        checkpoint.tensor(info.name).clone();
      } catch (const vitrail::Error&) {
      }
    }
  } catch (const vitrail::Error&) {
  }
  return 0;
}
