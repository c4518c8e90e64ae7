// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/datasets/class_dataset_internal.h"

#include <utility>

#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/data/datasets/class_matching_internal.h"
#include "vitrail/data/datasets/dataset_formats_internal.h"
#include "vitrail/data/datasets/left_out_internal.h"

namespace vitrail::data {

void ClassDataset::read_listing(FolderListing listing, const DatasetOptions& options) {
  if (listing.symbolic_links > 0) warn(str(root_.string(), ": ", listing.symbolic_links, " symbolic links left out"));
  if (!listing.outside.empty()) {
    warn(str(root_.string(), ": ", counted(listing.outside.size(), "file"),
             " left out, with a path out of the archive: ", quoted_list(listing.outside)));
  }
  contents_ = read_class_folders(std::move(listing), {.where = root_.string(),
                                                      .split = options.split,
                                                      .default_splits = options.default_splits,
                                                      .labels = options.labels,
                                                      .wordnet_ids = options.wordnet_ids,
                                                      .num_classes = class_limit(options)});
  class_names_ = std::move(contents_.class_names);
  split_ = contents_.split;
}

void add_entry(FolderListing& listing, std::set<std::string>& folders, std::string path) {
  if (("/" + path + "/").find("/../") != path.npos) return listing.outside.push_back(std::move(path));
  const bool is_folder = path.ends_with('/');
  if (is_folder) path.pop_back();
  for (size_t begin = 0, end = 0; end != path.npos; begin = end + 1) {
    end = path.find('/', begin);
    if (is_ignored_name(path.substr(begin, end - begin))) return;
    const std::string folder = path.substr(0, end);
    if ((end != path.npos || is_folder) && folders.insert(folder).second) listing.folders.push_back(folder);
  }
  if (!is_folder) add_file(listing, std::move(path));
}

}  // namespace vitrail::data
