// SPDX-License-Identifier: Apache-2.0
// Fuzzes CIFAR's binary files and the files with their class names.  Every input must give a dataset or a
// vitrail::Error.  The class names come first, with their length before them, and then the records.
#include "fuzz/inputs.h"
#include "vitrail/data/datasets/manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace vitrail;
  static const fuzz::Folder folder;
  std::string_view input = fuzz::text_of(data, size);
  const std::string_view names = fuzz::cut_sized(input);
  folder.write("batches.meta.txt", names);
  folder.write("fine_label_names.txt", names);
  for (const char* name : {"unnamed.bin", "test_batch.bin", "test.bin"}) {
    const auto file = folder.write(name, input);
    fuzz::attempt([&] {
      const auto dataset = data::open_dataset(file, {});
      data::summary(*dataset, "fuzz");
      for (int64_t i = 0; i < dataset->size(); ++i) dataset->get(i);
    });
  }
  fuzz::attempt([&] { data::open_dataset(folder.path(), {.num_classes = 3}); });
  return 0;
}
