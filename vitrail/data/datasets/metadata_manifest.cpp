// SPDX-License-Identifier: Apache-2.0
// Hugging Face's imagefolder: a metadata.csv or metadata.jsonl in the folder of the images, or in that of each split.
#include <map>
#include <set>

#include "vitrail/data/datasets/manifest_internal.h"
#include "vitrail/data/datasets/splits_internal.h"

namespace vitrail::data {
namespace fs = std::filesystem;

class MetadataManifest : public Manifest {
 public:
  explicit MetadataManifest(std::string where) : where_(std::move(where)) {}
  std::map<std::string, ManifestPtr> lists;  // by folder

  std::vector<std::string> splits() const override {
    std::set<std::string> names;
    for (const auto& [name, list] : lists) names.emplace(canonical_split(name));
    return {names.begin(), names.end()};
  }

 private:
  Rows rows(const DatasetOptions& options) const override {
    Splits splits{.where = where_};
    for (const auto& [name, list] : lists) splits.existing.push_back(name);
    const std::string split = choose_split(splits, options);
    DatasetOptions all = options;
    all.split = kNoSplit;
    Rows rows = lists.at(split)->rows(all);
    rows.split = split;
    return rows;
  }

  std::string where_;
};

ManifestPtr read_metadata(const fs::path& folder, const FolderListing& listing, const Columns& columns) {
  const auto manifest = std::make_shared<MetadataManifest>(folder.string());
  for (const std::string& path : listing.others) {
    const fs::path name = fs::path(path).filename(), parent = fs::path(path).parent_path();
    if (name != "metadata.csv" && name != "metadata.jsonl") continue;
    if (!parent.empty() && canonical_split(parent.string()).empty()) continue;
    ManifestPtr list = read_metadata_list(folder / path, columns);
    if (list && parent.empty()) return list;
    if (list) manifest->lists[parent] = std::move(list);
  }
  return manifest->lists.empty() ? nullptr : manifest;
}

}  // namespace vitrail::data
