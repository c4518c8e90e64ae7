// SPDX-License-Identifier: Apache-2.0
// Fuzzes zip archives of class folders.  Every input must give a dataset or a vitrail::Error.
//   corpus: tests/fixtures/data/*.zip tests/fixtures/base/*.zip
#include "fuzz/inputs.h"
#include "vitrail/data/datasets/manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace vitrail;
  static const fuzz::Folder folder;
  const auto file = folder.write("images.zip", fuzz::text_of(data, size));
  fuzz::attempt([&] { data::read_manifest(file)->splits(); });
  fuzz::attempt([&] {
    const auto dataset = data::open_dataset(file, {.decode = {.max_pixels = 1 << 12}});
    data::summary(*dataset, "fuzz");
    for (int64_t i = 0; i < std::min<int64_t>(dataset->size(), 8); ++i) {
      fuzz::attempt([&] { dataset->get(i); });
      if (dataset->content_size(i) < 1 << 16) fuzz::attempt([&] { dataset->content_hash(i); });
    }
  });
  return 0;
}
