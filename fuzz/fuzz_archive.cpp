// SPDX-License-Identifier: Apache-2.0
// Fuzzes the checkpoint reader for all formats, with the zip and pickle parsers and both formats of torch.save.  Every
// input must give tensors or a vitrail::Error.
#include "vitrail/base/error.h"
#include "vitrail/weights/checkpoint.h"
#include "vitrail/weights/pytorch/pickle_internal.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace vitrail::weights;
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  try {
    // Inputs rarely pass the checksums of a zip archive, so the pickle parser is also called directly.
    Pickle({bytes, size}, "fuzz");
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
