// SPDX-License-Identifier: Apache-2.0
// Fuzzes the names of folders and files that become classes and splits, as they are in a folder or an archive.  Every
// input must give labels or a vitrail::Error.  One path per line; folders end with '/'; the first line is the split.
#include "fuzz/inputs.h"
#include "vitrail/data/datasets/manifest_internal.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace vitrail;
  std::string_view input = fuzz::text_of(data, size);
  const std::string split = fuzz::cut(input, '\n');
  data::FolderListing listing;
  for (std::string& path : fuzz::lines_of(input, 256)) {
    // A listing has no empty names, and has the folders around each file.
    while (path.starts_with('/')) path.erase(0, 1);
    for (size_t at = path.find("//"); at != path.npos; at = path.find("//", at)) path.erase(at, 1);
    if (path.empty()) continue;
    for (size_t at = path.find('/'); at != path.npos; at = path.find('/', at + 1))
      listing.folders.push_back(path.substr(0, at));
    if (!path.ends_with('/')) data::add_file(listing, path);
  }
  data::sort_listing(listing);
  listing.folders.erase(std::unique(listing.folders.begin(), listing.folders.end()), listing.folders.end());
  const data::ManifestPtr manifest = data::class_folder_manifest("fuzz", listing, data::images_below("fuzz"));
  manifest->splits();
  const std::vector<std::string> labels{"cat", "dog, hound", "10"}, ids{"n01440764", "n02123045", "n02124075"};
  fuzz::attempt([&] { manifest->open({.split = split}); });
  fuzz::attempt([&] { manifest->open({.split = split, .labels = labels, .wordnet_ids = ids, .num_classes = 3}); });
  return 0;
}
