// SPDX-License-Identifier: Apache-2.0
// Fuzzes files of class names: lines and JSON.  Every input must give names or a vitrail::Error.  The first byte is the
// number of classes.
#include "fuzz/inputs.h"
#include "vitrail/models/label_file_internal.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace vitrail;
  if (size == 0) return 0;
  const std::string text(fuzz::text_of(data + 1, size - 1));
  fuzz::attempt([&] { models::parse_labels(text, "fuzz", data[0]); });
  return 0;
}
