// SPDX-License-Identifier: Apache-2.0
// Fuzzes the reader of index files, which `vitrail search` opens.  Every input must give an index or a vitrail::Error.
#include "fuzz/inputs.h"
#include "vitrail/analysis/flat_index.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace vitrail;
  static const fuzz::Folder folder;
  const auto file = folder.write("vectors.index", fuzz::text_of(data, size));
  fuzz::attempt([&] {
    const analysis::FlatIndex index(file);
    std::vector<float> row(static_cast<size_t>(index.width()));
    for (int64_t r = 0; r < index.count(); ++r) index.read(r, 1, row.data());
  });
  return 0;
}
