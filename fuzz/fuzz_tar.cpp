// SPDX-License-Identifier: Apache-2.0
// Fuzzes tar archives of class folders or of CIFAR's files.  Every input must give a dataset or a vitrail::Error.
//   corpus: tests/fixtures/base/*.tar tests/fixtures/data/*.tar.gz
#include "fuzz/inputs.h"
#include "vitrail/base/tar_internal.h"
#include "vitrail/data/datasets/manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace vitrail;
  static const fuzz::Folder folder;
  const std::string_view input = fuzz::text_of(data, size);
  fuzz::attempt([&] {
    for (const TarEntry& entry : read_tar(fuzz::bytes_of(input), "fuzz").entries) {
      if (entry.offset > size || entry.size > size - entry.offset) std::abort();
    }
  });
  const auto file = folder.write("images.tar", input);
  fuzz::attempt([&] { data::read_manifest(file)->splits(); });
  fuzz::attempt([&] {
    const auto dataset = data::open_dataset(file, {.decode = {.max_pixels = 1 << 12}});
    data::summary(*dataset, "fuzz");
    for (int64_t i = 0; i < std::min<int64_t>(dataset->size(), 8); ++i) {
      fuzz::attempt([&] { dataset->get(i); });
      fuzz::attempt([&] { dataset->content_hash(i); });
    }
  });
  return 0;
}
