// SPDX-License-Identifier: Apache-2.0
// Fuzzes the reader of .npy features.  Every input must give an array or a vitrail::Error.
//   corpus: tests/fixtures/data/*.npy
#include "fuzz/inputs.h"
#include "vitrail/base/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace vitrail;
  static const fuzz::Folder folder;
  const auto file = folder.write("features.npy", fuzz::text_of(data, size));
  fuzz::attempt([&] {
    const NpyArray array = read_npy(file);
    if (array.dtype == DType::f32) write_npy(folder.path() / "written.npy", array.shape, array.f32.data());
  });
  return 0;
}
