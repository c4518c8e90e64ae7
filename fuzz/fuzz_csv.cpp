// SPDX-License-Identifier: Apache-2.0
// Fuzzes datasets that are listed in a CSV file or in lines of JSON, of labels or of captions.  Every input must give a
// dataset or a vitrail::Error.
#include "fuzz/inputs.h"
#include "vitrail/data/datasets/csv_internal.h"
#include "vitrail/data/datasets/manifest.h"
#include "vitrail/data/datasets/pair_set.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace vitrail;
  static const fuzz::Folder folder;
  const std::string_view input = fuzz::text_of(data, size);
  fuzz::attempt([&] {
    const std::string text = data::utf8_text(std::string(input), "fuzz");
    data::CsvReader reader("fuzz", text);
    while (reader.next()) {
    }
  });
  for (const auto& file : {folder.write("list.csv", input), folder.write("list.jsonl", input)}) {
    fuzz::attempt([&] { data::is_pair_set(file); });
    fuzz::attempt([&] { data::pair_set_splits(file); });
    fuzz::attempt([&] { data::open_pair_set(file); });
    for (const data::DatasetOptions& options :
         {data::DatasetOptions{}, data::DatasetOptions{.labels = {"cat", "dog, hound", "n02123045"}}}) {
      fuzz::attempt([&] {
        const auto dataset = data::open_dataset(file, options);
        data::summary(*dataset, "fuzz");
        for (int64_t i = 0; i < dataset->size(); ++i) dataset->labels(i), dataset->path(i);
      });
    }
  }
  return 0;
}
