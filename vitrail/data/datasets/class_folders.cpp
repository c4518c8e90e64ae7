// SPDX-License-Identifier: Apache-2.0
// A listing of image paths as class folders (torchvision's ImageFolder), with or without split folders.  It works on
// paths only, so folders on disk and archives follow the same rules.
//
// Names that begin with '.' are ignored, folders without images are no classes (a warning counts them), and a single
// folder around the others is entered (skip_wrappers); in a split it may have the split's name.
//
// Splits.  If all top folders contain class folders and are named as splits (canonical_split), they are splits.  If
// only some are, it is an error, unless options.split names one of them; so is a folder that has images and is named as
// a split, unless all top folders are classes of the model.  Folders of class folders that only look like splits
// (resembled_split) are an error, unless they are classes of the model.  The wanted split, and one that is preferred to
// the split found, is an error if it has folders or files but no images.
//
// Classes.  The folders in the split, or the top folders.  Their images may be at any depth.  match_classes turns names
// into labels.  If no name matches, labels are numbers in natural order: silently if the folders define the classes,
// else with a warning and only if there are as many folders as classes.  Empty folders are not counted, but if they are
// needed, those whose images are of kinds that are not read, and those that cannot be read.
//
// Left-out files are counted in a warning.  A folder whose images are all of kinds that are not read is an error if the
// folders define the classes, else a warning.  Images outside the class folders are ignored with a warning.
// A folder that cannot be read is left out with a warning; it is an error if it may be the wanted split, or a class
// that the folders define.
#include <algorithm>
#include <map>
#include <set>

#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/base/warning_pause_internal.h"
#include "vitrail/data/datasets/class_matching_internal.h"
#include "vitrail/data/datasets/folder_splits_internal.h"
#include "vitrail/data/datasets/left_out_internal.h"
#include "vitrail/data/datasets/manifest_internal.h"
#include "vitrail/data/datasets/natural_order_internal.h"
#include "vitrail/data/datasets/unicode_names_internal.h"

namespace vitrail::data {
namespace {

using Paths = std::vector<std::string>;

// Class folders by name.
struct Groups {
  std::map<std::string, std::span<const std::string>, NaturalLess> images;  // folders with images
  Paths unsupported;  // folders that have images, but only of kinds that are not read
  Paths unreadable;   // folders that cannot be read
  Paths empty;        // all other folders
  Paths omissions;    // per folder of `unsupported`: "b (8 files left out: 8 .svg)"
};

std::string name_below(const Subfolder& folder, const std::string& path) { return path.substr(folder.prefix.size()); }

// The folders that cannot be read, with paths relative to `folder`.
std::vector<UnreadableFolder> unreadable_in(const Subfolder& folder) {
  std::vector<UnreadableFolder> found;
  for (const UnreadableFolder& unreadable : folder.listing.unreadable) {
    if (unreadable.path.starts_with(folder.prefix))
      found.push_back({name_below(folder, unreadable.path), unreadable.error});
  }
  return found;
}

Groups group_by_folder(const Subfolder& folder) {
  Groups groups;
  const Subfolder::Paths images = folder.select(folder.listing.images);
  for (size_t begin = 0, end = 0; begin < images.size(); begin = end) {
    end = begin + 1;
    if (folder.is_top(images[begin])) continue;
    const Subfolder inner = folder.enter(folder.first(images[begin]));
    const Subfolder::Paths found = inner.select(images);
    end = begin + found.size();
    groups.images[folder.first(images[begin])] = found;
  }
  const std::vector<UnreadableFolder> unreadable = unreadable_in(folder);
  for (const std::string& path : folder.select(folder.listing.folders)) {
    const std::string name = name_below(folder, path);
    if (!folder.is_top(path) || groups.images.contains(name)) continue;
    const auto others = folder.enter(name).select(folder.listing.others);
    const bool is_unsupported = std::ranges::any_of(others, is_unsupported_image);
    const bool is_unreadable = std::ranges::find(unreadable, name, &UnreadableFolder::path) != unreadable.end();
    (is_unsupported ? groups.unsupported : is_unreadable ? groups.unreadable : groups.empty).push_back(name);
    if (is_unsupported) groups.omissions.push_back(name + " (" + left_out_text({others.begin(), others.end()}) + ")");
  }
  return groups;
}

int64_t images_outside(const Subfolder& folder) {
  return std::ranges::count_if(folder.select(folder.listing.images),
                               [&](const std::string& path) { return folder.is_top(path); });
}

std::string left_out_in(const Subfolder& folder) {
  const auto others = folder.select(folder.listing.others);
  return left_out_text({others.begin(), others.end()});
}

void require_images(const Subfolder& folder, const Groups& groups) {
  if (!groups.images.empty()) return;
  for (const UnreadableFolder& unreadable : unreadable_in(folder)) throw Error(unreadable.error);
  const int64_t outside = images_outside(folder);
  std::string got = counted(outside, "image") + " outside them";
  if (outside == 0) got = groups.empty.empty() && groups.unsupported.empty() ? "none" : "folders without images";
  if (const std::string others = left_out_in(folder); !others.empty()) got += " (" + others + ")";
  throw Error(folder.where, "class folders with images in them, or a list of images and labels", got);
}

// A folder that cannot be read costs its images alone, unless it may be one of the classes that the folders define.
void report_unreadable(const Subfolder& folder, bool defines_classes) {
  Paths names;
  for (const UnreadableFolder& unreadable : unreadable_in(folder)) {
    if (defines_classes && unreadable.path.find('/') == std::string::npos) throw Error(unreadable.error);
    names.push_back(unreadable.path);
  }
  if (names.empty()) return;
  warn(str(folder.where, ": left out ", counted(names.size(), "folder"), " that cannot be read: ", quoted_list(names)));
}

// Tells what is not used.  Where the folders define the classes, one whose images are all left out would change them.
void report_omissions(const Subfolder& folder, const Groups& groups, bool defines_classes) {
  const std::string& where = folder.where;
  if (!groups.unsupported.empty()) {
    const std::string text = join(groups.omissions);
    if (defines_classes) throw Error(where, "images that can be read in every class folder", "none in " + text);
    warn(where + ": class folders without an image that can be read: " + text);
  }
  if (const std::string others = left_out_in(folder); !others.empty()) warn(where + ": " + others);
  report_unreadable(folder, defines_classes);
  if (!groups.empty.empty()) {
    Paths names = groups.empty;
    std::ranges::sort(names, NaturalLess());
    warn(str(where, ": ", names.size(),
             names.size() == 1 ? " folder without images is no class: " : " folders without images are no classes: ",
             quoted_list(names)));
  }
  const int64_t outside = images_outside(folder);
  if (outside > 0)
    warn(str(where, ": ", counted(outside, "image"), " outside the class folders ", outside == 1 ? "is" : "are",
             " ignored"));
}

// The names in natural order and Unicode's composed form.
Paths composed_names(const Groups& groups, const std::string& where) {
  Paths names;
  std::set<std::string> seen;
  for (const auto& [name, paths] : groups.images) {
    names.push_back(composed(name));
    if (seen.insert(names.back()).second) continue;
    throw Error(where, "class folders with different names", str("two called '", name, "' in two Unicode forms"));
  }
  return names;
}

struct Labels {
  std::vector<int64_t> of_folders;  // per folder with images, in natural order
  Paths class_names;
};

// Numbers the folders in natural order.  Those whose images are left out count if they are needed for a model's number
// of classes.
Labels number_by_order(const Groups& groups, Paths names, const std::string& where, const DatasetOptions& options) {
  Labels labels;
  const int64_t limit = class_limit(options);
  const bool defines_classes = limit == INT64_MAX;
  const auto matches = [&](size_t count) { return defines_classes || static_cast<int64_t>(count) == limit; };
  Paths all = names;
  if (!matches(names.size())) {
    for (const Paths* folders : {&groups.unsupported, &groups.unreadable}) {
      for (const std::string& name : *folders) all.push_back(composed(name));
    }
    std::sort(all.begin(), all.end(), NaturalLess());
  }
  if (!matches(all.size())) {
    std::string got = counted(names.size(), "class folder") + ": " + quoted_list(names);
    if (!groups.empty.empty()) got += "; folders without images are no classes: " + quoted_list(groups.empty);
    throw Error(where,
                str("folders named after the classes of the model or their indices, or as many folders as its ", limit,
                    " classes"),
                got);
  }
  for (const std::string& name : names)
    labels.of_folders.push_back(std::find(all.begin(), all.end(), name) - all.begin());
  if (!defines_classes) {
    warn(str(where, ": none of the ", names.size(), " class folders names one of the model's ", limit,
             options.labels.empty() ? " classes" : " labels",
             "; class indices follow the sorted order of the folders"));
  }
  labels.class_names = std::move(all);
  return labels;
}

Labels label_folders(const Groups& groups, const std::string& where, const DatasetOptions& options) {
  const int64_t limit = class_limit(options);
  Paths names = composed_names(groups, where);
  ClassMatch match = match_classes(where, names, options.labels, options.wordnet_ids, limit);
  if (match.rule == ClassMatch::Rule::none) return number_by_order(groups, std::move(names), where, options);
  Labels labels{std::move(match.indices), options.labels.empty() ? options.wordnet_ids : options.labels};
  if (labels.class_names.empty()) {
    for (int64_t i = 0; i < limit; ++i) labels.class_names.push_back(std::to_string(i));
  }
  return labels;
}

class ClassFolderManifest : public Manifest {
 public:
  explicit ClassFolderManifest(ImageFiles files)
      : where_(std::move(files.where)), listing_(std::move(files.listing)), images_(std::move(files.images)) {}

  Paths splits() const override {
    Subfolder folder{listing_, where_};
    {
      const WarningPause pause;  // open() says the same
      skip_wrappers(folder, {});
    }
    for (const UnreadableFolder& unreadable : unreadable_in(folder)) {
      if (!canonical_split(unreadable.path).empty()) throw Error(unreadable.error);
    }
    const Splits splits = splits_of(folder, {});
    report_unusable(splits);
    std::set<std::string> names;
    for (const std::string& name : splits.existing) names.emplace(canonical_split(name));
    return {names.begin(), names.end()};
  }

 private:
  Rows rows(const DatasetOptions& options) const override {
    report_archive(listing_, where_);
    Subfolder folder{listing_, where_};
    skip_wrappers(folder, options);
    const std::string split = choose_split(folder, options);
    Rows rows{.where = where_, .split = split.empty() ? "" : folder.prefix + split, .images = images_};
    if (!split.empty()) {
      folder.prefix += split + "/";
      skip_wrappers(folder, options, split);
    }
    const Groups groups = group_by_folder(folder);
    require_images(folder, groups);
    report_omissions(folder, groups, class_limit(options) == INT64_MAX);
    Labels labels = label_folders(groups, where_, options);
    size_t position = 0;
    for (const auto& [name, paths] : groups.images) {
      for (const std::string& path : paths)
        rows.items.push_back({.path = path, .labels = {labels.of_folders[position]}});
      ++position;
    }
    rows.class_names = std::move(labels.class_names);
    return rows;
  }

  std::string where_;
  FolderListing listing_;
  ImageSourcePtr images_;
};

}  // namespace

ManifestPtr class_folder_manifest(ImageFiles files) { return std::make_shared<ClassFolderManifest>(std::move(files)); }

}  // namespace vitrail::data
