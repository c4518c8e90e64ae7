// SPDX-License-Identifier: Apache-2.0
// Fuzzes MNIST's IDX files, plain and gzip.  Every input must give a dataset or a vitrail::Error.  The labels file
// comes first, with its length before it, and then the images file.
#include "fuzz/inputs.h"
#include "vitrail/data/datasets/manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace vitrail;
  static const fuzz::Folder folder;
  std::string_view input = fuzz::text_of(data, size);
  folder.write("t10k-labels-idx1-ubyte", fuzz::cut_sized(input));
  const auto images = folder.write("t10k-images-idx3-ubyte", input);
  fuzz::attempt([&] {
    const auto dataset = data::open_dataset(images, {});
    for (int64_t i = 0; i < std::min<int64_t>(dataset->size(), 4); ++i) {
      dataset->get(i);
      dataset->content_hash(i);
    }
  });
  fuzz::attempt([&] { data::open_dataset(folder.path(), {.num_classes = 3}); });
  return 0;
}
