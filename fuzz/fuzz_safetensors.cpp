// SPDX-License-Identifier: Apache-2.0
// Fuzzes the safetensors reader.  Every input must give tensors or a vitrail::Error.
#include "vitrail/base/error.h"
#include "vitrail/weights/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace vitrail::weights;
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  try {
    const auto file = open_safetensors(FileBytes::hold({bytes, bytes + size}, "fuzz"));
    for (size_t i = 0; i < file->tensors().size(); ++i) {
      try {
        file->tensor(i).clone();
      } catch (const vitrail::Error&) {
      }
    }
  } catch (const vitrail::Error&) {
  }
  return 0;
}
