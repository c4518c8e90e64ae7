// SPDX-License-Identifier: Apache-2.0
// Fuzzes CIFAR's files for Python: batches and their class names.  Every input must give a dataset or a vitrail::Error.
//   corpus: tests/fixtures/data/cifar-10-batches-py/* tests/fixtures/data/cifar-100-python/*
#include "fuzz/inputs.h"
#include "vitrail/data/datasets/cifar_batch_internal.h"
#include "vitrail/data/datasets/manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace vitrail;
  static const fuzz::Folder folder;
  const std::string_view input = fuzz::text_of(data, size);
  fuzz::attempt([&] { data::read_pickled_names({.path = "fuzz", .bytes = fuzz::bytes_of(input)}, "label_names"); });
  for (const char* name : {"test_batch", "test"}) {
    const auto file = folder.write(name, input);
    fuzz::attempt([&] {
      const auto dataset = data::open_dataset(file, {});
      data::summary(*dataset, "fuzz");
      for (int64_t i = 0; i < dataset->size(); ++i) dataset->get(i);
    });
  }
  return 0;
}
